import { expect, test } from "vitest";
import type { DepartmentView, ProjectView } from "@/api";
import { gpuStanding, largest, rowsOf } from "./amounts";

const pools = (quota: string | null, held = "0") => ({
  default: {
    terms: { gpu: { quota, weight: 2, limit: null } },
    fairShare: { gpu: "1.5" },
    held: { gpu: held },
    asked: { gpu: "3" },
  },
});
const department = (name: string) => ({ id: `d-${name}`, name, pools: pools("8") }) as unknown as DepartmentView;
const project = (name: string, of: string) =>
  ({ id: `p-${name}`, name, department: of, pools: pools(null, "2.5") }) as unknown as ProjectView;

test("amounts are read, and no bound stays none", () => {
  expect(gpuStanding(pools(null, "2.5").default as never)).toEqual({
    held: 2.5,
    asked: 3,
    fairShare: 1.5,
    quota: null,
    limit: null,
    weight: 2,
  });
  expect(gpuStanding(undefined).held).toBe(0);
});

test("projects follow their department, and a filter keeps the way to what it finds", () => {
  const rows = rowsOf(
    [department("b"), department("a")],
    [project("z", "a"), project("y", "b"), project("x", "a")],
    "default",
    "",
  );
  expect(rows.map((one) => one.name)).toEqual(["a", "x", "z", "b", "y"]);
  expect(
    rowsOf([department("b"), department("a")], [project("z", "a"), project("y", "b")], "default", "y").map(
      (one) => one.name,
    ),
  ).toEqual(["b", "y"]);
  expect(largest(rows)).toBe(8);
});
