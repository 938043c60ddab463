// Amounts and times in the words of the command line: `0.5 × H100`, `40 GiB`, `2 h 14 m`.

const WHOLE = 1000;

/** Thousandths of a device as devices: 1500 is `1.5`. */
export function gpus(milli: number): string {
  return number(milli / WHOLE);
}

/** At most three digits after the point, none that say nothing; thousands apart. */
export function number(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 3 });
}

export function gib(mib: number): string {
  return `${number(Math.round((mib / 1024) * 10) / 10)} GiB`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** `1 pod`, `3 pods`. */
export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

const UNITS: readonly [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
];

/** A span in its two largest units: `3 d 4 h`, `2 h 14 m`, `41 s`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const first = UNITS.findIndex(([, size]) => whole >= size);
  if (first < 0) return "0 s";
  const parts: string[] = [];
  let rest = whole;
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const times = Math.floor(rest / size);
    rest -= times * size;
    if (times > 0) parts.push(`${times} ${unit}`);
  }
  return parts.join(" ");
}

const ABSOLUTE = new Intl.DateTimeFormat("en-CA", {
  dateStyle: "short",
  timeStyle: "medium",
  hour12: false,
});

/** A time with its zone, as one hovers for. */
export function absolute(time: string): string {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return `${ABSOLUTE.format(new Date(time)).replace(",", "")} (${zone})`;
}

/** A word of the API as people read it: `out-of-memory` is `out of memory`, `fairShare` is `fair share`. */
export function words(code: string): string {
  return code.replaceAll("-", " ").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
