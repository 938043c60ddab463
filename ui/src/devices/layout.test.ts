import { expect, test } from "vitest";
import type { DeviceMap } from "@/api";
import { bestSize, corner, deviceAt, layoutOf, visible } from "./layout";

function mapOf(nodes: number, devices: number, rack: (node: number) => string | null = () => null): DeviceMap {
  const list = Array.from({ length: nodes }, (_, at) => ({
    id: `node-${at}`,
    pool: "default",
    rack: rack(at),
    isReady: true,
    isCordoned: false,
    first: at * devices,
    count: devices,
  }));
  return { nodes: list } as unknown as DeviceMap;
}

test("every device is found where it is drawn", () => {
  const layout = layoutOf(mapOf(50, 8), 12, 700);
  for (const block of layout.blocks)
    for (const place of [0, 3, 7]) {
      const [x, y] = corner(layout, block, place);
      expect(deviceAt(layout, x + 2, y + 2)).toBe(block.node.first + place);
    }
  expect(deviceAt(layout, 1, 1)).toBe(-1);
  expect(deviceAt(layout, 699, 10_000)).toBe(-1);
});

test("a rack begins a line of its own, with its name", () => {
  const layout = layoutOf(
    mapOf(10, 8, (node) => (node < 5 ? "a" : "b")),
    8,
    4000,
  );
  expect(layout.labels.map((one) => one.text)).toEqual(["default, rack a", "default, rack b"]);
  expect(layout.blocks[5]?.x).toBe(layout.blocks[0]?.x);
  expect(layout.blocks[5]?.y).toBeGreaterThan(layout.blocks[4]?.y ?? 0);
});

test("only what is seen is drawn", () => {
  const layout = layoutOf(mapOf(12_500, 8), 5, 1400);
  const seen = visible(layout, 1000, 1800);
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.length).toBeLessThan(4000);
  expect(seen.every((one) => one.y + layout.blockHeight >= 1000 && one.y <= 1800)).toBe(true);
});

test("a small cluster is drawn large, a large one small", () => {
  expect(bestSize(mapOf(1, 8), 1200, 700)).toBe(64);
  expect(bestSize(mapOf(12_500, 8), 1200, 700)).toBe(3);
});
