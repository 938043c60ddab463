// Draws the map: what is seen, as fast as it can be. Small squares are written as pixels; large ones have shares beside
// each other, a bar for use, and a border for the state.
import type { DeviceMap } from "@/api";
import { colour, pattern } from "@/parts/colours";
import { corner, type Layout, visible } from "./layout";

export const FREE = 0;
export const HELD = 1;
export const WITHHELD = 2;
export const LOST = 3;

/** What of a map is looked up for each device, worked out once. */
export interface Prepared {
  map: DeviceMap;
  /** Where the holders of each device begin in `map.holders`, in threes; one more at the end. */
  starts: Uint32Array;
  colours: string[];
  patterns: number[];
}

export interface Inks {
  free: string;
  withheld: string;
  lost: string;
  text: string;
  mark: string;
  surface: string;
}

export function prepare(map: DeviceMap): Prepared {
  const counts = new Uint32Array(map.state.length + 1);
  for (let at = 0; at < map.holders.length; at += 3) {
    const device = map.holders[at] ?? 0;
    counts[device + 1] = (counts[device + 1] ?? 0) + 1;
  }
  for (let at = 1; at < counts.length; at += 1) counts[at] = (counts[at] ?? 0) + (counts[at - 1] ?? 0);
  return { map, starts: counts, colours: map.projects.map(colour), patterns: map.projects.map(pattern) };
}

export function inksOf(element: Element): Inks {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    free: of("--track"),
    withheld: of("--warning"),
    lost: of("--bad"),
    text: of("--text-quiet"),
    mark: of("--text"),
    surface: of("--surface"),
  };
}

export interface View {
  width: number;
  height: number;
  top: number;
  /** 1 for each device that is meant by the filter; null: all are. */
  mask: Uint8Array | null;
  chosen: number;
}

export function paint(
  context: CanvasRenderingContext2D,
  prepared: Prepared,
  layout: Layout,
  inks: Inks,
  view: View,
): void {
  context.clearRect(0, 0, view.width, view.height);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = inks.text;
  for (const label of layout.labels) {
    const y = label.y - view.top;
    if (y > -24 && y < view.height) context.fillText(label.text, 8, y + 15);
  }
  const blocks = visible(layout, view.top, view.top + view.height);
  const hasNames = layout.size >= 20;
  for (const block of blocks) {
    if (hasNames) {
      context.fillStyle = inks.text;
      context.fillText(block.node.id, block.x, block.y - view.top - 4, layout.blockWidth - 8);
    }
    for (let place = 0; place < block.node.count; place += 1) {
      const [x, y] = corner(layout, block, place);
      const device = block.node.first + place;
      context.globalAlpha = view.mask !== null && view.mask[device] === 0 ? 0.15 : 1;
      square(context, prepared, inks, device, x, y - view.top, layout.size);
    }
  }
  context.globalAlpha = 1;
  if (view.chosen >= 0) outline(context, layout, inks, view);
}

function square(
  context: CanvasRenderingContext2D,
  { map, starts, colours, patterns }: Prepared,
  inks: Inks,
  device: number,
  x: number,
  y: number,
  size: number,
): void {
  const state = map.state[device] ?? FREE;
  const from = starts[device] ?? 0;
  const to = starts[device + 1] ?? from;
  const isFull = size < 8 && to - from >= 1;
  if (!isFull) {
    context.fillStyle = state === LOST ? inks.lost : inks.free;
    context.fillRect(x, y, size, size);
  }
  let left = x;
  for (let at = from; at < to; at += 1) {
    const project = map.holders[3 * at + 1] ?? 0;
    const width = isFull ? size / (to - from) : (size * (map.holders[3 * at + 2] ?? 0)) / 1000;
    context.fillStyle = colours[project] ?? inks.mark;
    context.fillRect(left, y, width, size);
    if (size >= 12 && patterns[project]) stripes(context, inks, left, y, width, size, patterns[project] ?? 0);
    left += width;
  }
  const use = map.use[device] ?? -1;
  if (size >= 12 && use >= 0) {
    context.fillStyle = inks.surface;
    context.fillRect(x + 1, y + size - 4, size - 2, 3);
    context.fillStyle = inks.mark;
    context.fillRect(x + 1, y + size - 4, ((size - 2) * use) / 100, 3);
  }
  if (state >= WITHHELD && size >= 5) {
    context.strokeStyle = state === LOST ? inks.lost : inks.withheld;
    context.lineWidth = size >= 12 ? 2 : 1;
    context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  } else if (state === WITHHELD) {
    context.fillStyle = inks.withheld;
    context.fillRect(x, y, size, 1);
  }
}

/** What tells apart projects that share a colour. */
function stripes(
  context: CanvasRenderingContext2D,
  inks: Inks,
  x: number,
  y: number,
  width: number,
  size: number,
  kind: number,
): void {
  context.fillStyle = inks.surface;
  const step = 3 + kind * 2;
  for (let at = step; at < size; at += step) context.fillRect(x, y + at, width, 1);
}

function outline(context: CanvasRenderingContext2D, layout: Layout, inks: Inks, view: View): void {
  const block = visible(layout, view.top, view.top + view.height).find(
    (one) => view.chosen >= one.node.first && view.chosen < one.node.first + one.node.count,
  );
  if (block === undefined) return;
  const [x, y] = corner(layout, block, view.chosen - block.node.first);
  context.strokeStyle = inks.mark;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - view.top - 1, layout.size + 2, layout.size + 2);
}

/** Which devices a text means: by node, pool, rack, model, project or state. */
export function maskOf({ map, starts }: Prepared, text: string): Uint8Array | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return null;
  const words = ["free", "held", "withheld", "lost"];
  const state = words.indexOf(wanted);
  const projects = map.projects.map((name) => name.toLowerCase().includes(wanted));
  const models = map.models.map((name) => name.toLowerCase().includes(wanted));
  const mask = new Uint8Array(map.state.length);
  for (const node of map.nodes) {
    const isNode = [node.id, node.pool, node.rack ?? ""].some((one) => one.toLowerCase().includes(wanted));
    for (let device = node.first; device < node.first + node.count; device += 1) {
      let isMeant = isNode || map.state[device] === state || (models[map.model[device] ?? 0] ?? false);
      for (let at = starts[device] ?? 0; !isMeant && at < (starts[device + 1] ?? 0); at += 1)
        isMeant = projects[map.holders[3 * at + 1] ?? 0] ?? false;
      mask[device] = isMeant ? 1 : 0;
    }
  }
  return mask;
}

/** A device in words. */
export function describe({ map, starts }: Prepared, device: number): string {
  const node = map.nodes.find((one) => device >= one.first && device < one.first + one.count);
  if (node === undefined) return "";
  const held = (map.held[device] ?? 0) / 1000;
  const names: string[] = [];
  for (let at = starts[device] ?? 0; at < (starts[device + 1] ?? 0); at += 1)
    names.push(`${map.projects[map.holders[3 * at + 1] ?? 0]} ${(map.holders[3 * at + 2] ?? 0) / 1000}`);
  const state = ["free", "held", "withheld", "lost"][map.state[device] ?? 0];
  const use = map.use[device] ?? -1;
  const parts = [`${node.id}/${device - node.first}`, map.models[map.model[device] ?? 0] ?? "", state ?? ""];
  if (held > 0) parts.push(`${held} held: ${names.join(", ")}`);
  parts.push(use < 0 ? "use not measured" : `${use} % used`);
  return parts.filter(Boolean).join(", ");
}
