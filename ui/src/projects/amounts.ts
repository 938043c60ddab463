// Amounts of the queue tree as numbers: GPU in devices. They come as texts: `2`, `0.5`; null is no bound.
import type { DepartmentView, PoolStanding, ProjectView } from "@/api";

export interface Standing {
  held: number;
  asked: number;
  fairShare: number;
  quota: number | null;
  limit: number | null;
  weight: number;
}

export function gpuStanding(pool: PoolStanding | undefined): Standing {
  const claim = pool?.terms.gpu;
  return {
    held: Number(pool?.held.gpu ?? 0),
    asked: Number(pool?.asked.gpu ?? 0),
    fairShare: Number(pool?.fairShare.gpu ?? 0),
    quota: amount(claim?.quota),
    limit: amount(claim?.limit),
    weight: claim?.weight ?? 1,
  };
}

function amount(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text);
}

export interface Row {
  id: string;
  name: string;
  department: DepartmentView | null;
  project: ProjectView | null;
  pool: string;
  standing: Standing;
}

/** The tree of a pool as rows: each department, then its projects; by name. `text` leaves out what has another name. */
export function rowsOf(
  departments: readonly DepartmentView[],
  projects: readonly ProjectView[],
  pool: string,
  text: string,
): Row[] {
  const byName = <T extends { name: string }>(items: readonly T[]) =>
    [...items].sort((a, b) => a.name.localeCompare(b.name));
  return byName(departments).flatMap((department) => {
    const own = byName(projects).filter((one) => one.department === department.name);
    const shown = department.name.includes(text) ? own : own.filter((one) => one.name.includes(text));
    if (shown.length === 0 && !department.name.includes(text)) return [];
    const head: Row = {
      id: department.id,
      name: department.name,
      department,
      project: null,
      pool,
      standing: gpuStanding(department.pools[pool]),
    };
    return [
      head,
      ...shown.map((project) => ({
        id: project.id,
        name: project.name,
        department: null,
        project,
        pool,
        standing: gpuStanding(project.pools[pool]),
      })),
    ];
  });
}

/** The largest amount of all: what the bars are measured by. */
export function largest(rows: readonly Row[]): number {
  return Math.max(1, ...rows.flatMap(({ standing }) => [standing.held, standing.quota ?? 0, standing.fairShare]));
}
