// A log of a million lines in little memory: the texts of many lines in one string each, and where each line begins.
// A line is met by its number; objects are made only for what is drawn.

export type Channel = "stdout" | "stderr" | "marker";

export interface Line {
  text: string;
  time: number;
  channel: Channel;
  index: number;
}

const BLOCK = 1024;
const CHANNELS: readonly Channel[] = ["stdout", "stderr", "marker"];

interface Block {
  text: string;
  ends: Uint32Array;
  times: Float64Array;
  channels: Uint8Array;
  indices: Uint16Array;
  count: number;
}

interface Pending {
  texts: string[];
  times: number[];
  channels: number[];
  indices: number[];
}

/** Lines that are only added to. Once it holds `most`, the oldest block goes for each new one. */
export class LogText {
  private blocks: Block[] = [];
  private pending: Pending = { texts: [], times: [], channels: [], indices: [] };
  /** How many lines went because there were too many. */
  dropped = 0;

  constructor(private readonly most = 1_000_000) {}

  get length(): number {
    return this.blocks.length * BLOCK + this.pending.texts.length;
  }

  add(line: Line): void {
    const { texts, times, channels, indices } = this.pending;
    texts.push(line.text);
    times.push(line.time);
    channels.push(CHANNELS.indexOf(line.channel));
    indices.push(line.index);
    if (texts.length === BLOCK) this.pack();
  }

  /** Go on with the last line of all: the server sent the next part of it. */
  extendLast(text: string): void {
    const last = this.pending.texts.length - 1;
    if (last >= 0) this.pending.texts[last] += text;
  }

  at(number: number): Line | null {
    const block = this.blocks[Math.floor(number / BLOCK)];
    const place = number % BLOCK;
    if (block !== undefined) {
      const begin = place === 0 ? 0 : (block.ends[place - 1] ?? 0);
      return {
        text: block.text.slice(begin, block.ends[place]),
        time: block.times[place] ?? 0,
        channel: CHANNELS[block.channels[place] ?? 0] ?? "stdout",
        index: block.indices[place] ?? 0,
      };
    }
    const { texts, times, channels, indices } = this.pending;
    const rest = number - this.blocks.length * BLOCK;
    const text = texts[rest];
    if (text === undefined) return null;
    const channel = CHANNELS[channels[rest] ?? 0] ?? "stdout";
    return { text, time: times[rest] ?? 0, channel, index: indices[rest] ?? 0 };
  }

  /** The numbers of all lines that hold the text, whatever its case, from a number on; at most so many. */
  find(wanted: string, most = 10_000): number[] {
    const found: number[] = [];
    const text = wanted.toLowerCase();
    if (text === "") return found;
    for (let at = 0; at < this.blocks.length && found.length < most; at += 1) {
      const block = this.blocks[at];
      // One search in the whole block passes over most of them at once.
      if (block === undefined || !block.text.toLowerCase().includes(text)) continue;
      this.findIn(at * BLOCK, BLOCK, text, found);
    }
    this.findIn(this.blocks.length * BLOCK, this.pending.texts.length, text, found);
    return found.slice(0, most);
  }

  private findIn(from: number, count: number, text: string, found: number[]): void {
    for (let number = from; number < from + count; number += 1)
      if (this.at(number)?.text.toLowerCase().includes(text)) found.push(number);
  }

  private pack(): void {
    const { texts, times, channels, indices } = this.pending;
    const ends = new Uint32Array(BLOCK);
    let end = 0;
    texts.forEach((text, place) => {
      end += text.length;
      ends[place] = end;
    });
    this.blocks.push({
      text: texts.join(""),
      ends,
      times: Float64Array.from(times),
      channels: Uint8Array.from(channels),
      indices: Uint16Array.from(indices),
      count: BLOCK,
    });
    this.pending = { texts: [], times: [], channels: [], indices: [] };
    if (this.blocks.length * BLOCK <= this.most) return;
    this.blocks.shift();
    this.dropped += BLOCK;
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are made of them
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: those that have no picture get one
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** A line as it may be shown: without escape sequences, control characters as their pictures; a progress bar that
 * returned to the start of its line shows its last state. */
export function shown(text: string): string {
  const plain = text.replace(ANSI, "").replace(/\r+$/, "");
  const last = plain.slice(plain.lastIndexOf("\r") + 1);
  return last.replace(CONTROL, (one) =>
    one === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + one.charCodeAt(0)),
  );
}
