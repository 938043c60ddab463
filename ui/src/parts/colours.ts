// The colour of a project or department: the same everywhere and always, and told apart by a pattern beyond eight.
import { PALETTE } from "@/app/theme";

/** A number for a name that does not change (FNV-1a). */
function hash(name: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < name.length; index += 1) value = Math.imul(value ^ name.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

const given = new Map<string, number>();

/** Give the first eight names a colour each, in their order; the others share them by hash. */
export function colourNames(names: readonly string[]): void {
  for (const name of [...names].sort()) {
    if (given.has(name)) continue;
    given.set(name, given.size < PALETTE.length ? given.size : hash(name) % PALETTE.length);
  }
}

export function colour(name: string): string {
  return PALETTE[given.get(name) ?? hash(name) % PALETTE.length] ?? PALETTE[0];
}

/** 0: plain; 1, 2, 3: striped in ways that tell apart names that share a colour. */
export function pattern(name: string): number {
  return given.size <= PALETTE.length ? 0 : (hash(name) >>> 8) % 4;
}
