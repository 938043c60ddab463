// Where each device lies on the map: nodes in their order, as many beside each other as fit, grouped by pool and rack.
import type { DeviceMap, MapNode } from "@/api";

export interface Block {
  node: MapNode;
  x: number;
  y: number;
}

export interface Label {
  text: string;
  y: number;
}

export interface Layout {
  blocks: Block[];
  labels: Label[];
  size: number;
  gap: number;
  /** Devices beside each other in a node. */
  perRow: number;
  blockWidth: number;
  blockHeight: number;
  columns: number;
  height: number;
}

export const SIZES = [3, 5, 8, 12, 20, 36, 64] as const;
const MARGIN = 8;
const HEAD = 24;
const NAMED_FROM = 20;

/** The largest squares with which all devices fit into the window. */
export function bestSize(map: DeviceMap, width: number, height: number): number {
  const fitting = [...SIZES].reverse().find((size) => layoutOf(map, size, width).height <= height);
  return fitting ?? SIZES[0];
}

export function layoutOf(map: DeviceMap, size: number, width: number): Layout {
  const gap = size < 8 ? 1 : 2;
  const most = map.nodes.reduce((found, node) => Math.max(found, node.count), 1);
  const perRow = Math.min(8, most);
  const lines = Math.ceil(most / perRow);
  const name = size >= NAMED_FROM ? 16 : 0;
  const blockWidth = perRow * (size + gap) + 2 * gap + 2;
  const blockHeight = lines * (size + gap) + 2 * gap + 2 + name;
  const columns = Math.max(1, Math.floor((width - MARGIN) / blockWidth));
  const blocks: Block[] = [];
  const labels: Label[] = [];
  let y = MARGIN;
  let column = 0;
  let group: string | null = null;
  for (const node of map.nodes) {
    const own = node.rack === null ? node.pool : `${node.pool}, rack ${node.rack}`;
    if (own !== group) {
      if (column > 0) y += blockHeight;
      column = 0;
      if (group !== null) y += MARGIN;
      labels.push({ text: own, y });
      y += HEAD;
      group = own;
    }
    blocks.push({ node, x: MARGIN + column * blockWidth, y: y + name });
    column += 1;
    if (column === columns) {
      column = 0;
      y += blockHeight;
    }
  }
  const height = y + (column > 0 ? blockHeight : 0) + MARGIN;
  return { blocks, labels, size, gap, perRow, blockWidth, blockHeight, columns, height };
}

/** The blocks between two heights: those before are passed over by halving. */
export function visible(layout: Layout, top: number, bottom: number): Block[] {
  const { blocks, blockHeight } = layout;
  let low = 0;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((blocks[middle]?.y ?? 0) + blockHeight < top) low = middle + 1;
    else high = middle;
  }
  const found: Block[] = [];
  for (let at = low; at < blocks.length; at += 1) {
    const block = blocks[at];
    if (block === undefined || block.y > bottom) break;
    found.push(block);
  }
  return found;
}

/** Where a device of a block begins. */
export function corner(layout: Layout, block: Block, place: number): [number, number] {
  const step = layout.size + layout.gap;
  return [block.x + (place % layout.perRow) * step, block.y + Math.floor(place / layout.perRow) * step];
}

/** The device at a point, or -1. */
export function deviceAt(layout: Layout, x: number, y: number): number {
  const step = layout.size + layout.gap;
  for (const block of visible(layout, y - layout.blockHeight, y)) {
    const column = Math.floor((x - block.x) / step);
    const line = Math.floor((y - block.y) / step);
    const place = line * layout.perRow + column;
    const isIn = x >= block.x && y >= block.y && column < layout.perRow && place < block.node.count;
    if (isIn && column >= 0 && line >= 0) return block.node.first + place;
  }
  return -1;
}
