// One project or department: its terms, and what changing them would do before it is done.
import { ActionIcon, Button, Group, NumberInput, Slider, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconX } from "@tabler/icons-react";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import {
  type Claim,
  deleteDepartment,
  deleteProject,
  type PoolTerms,
  type QueuePreview,
  type QueueUpdate,
  updateDepartment,
  updateProject,
} from "@/api";
import { Problem } from "@/app/problems";
import { Confirm } from "@/parts/Confirm";
import { Copy } from "@/parts/Copy";
import { changed } from "@/parts/Faults";
import { number } from "@/parts/format";
import { tellDone, tellFailed } from "@/parts/notify";
import { useQueryState } from "@/parts/url";
import type { Row } from "./amounts";
import { PreviewText } from "./PreviewText";
import css from "./Projects.module.css";

const PAUSE = 250;
type Resource = "gpu" | "cpu" | "memory";
type Terms = Record<Resource, { quota: string; weight: number; limit: string }> & { priority: number };

function editable(terms: PoolTerms | undefined): Terms {
  const claim = (one: Claim | undefined) => ({
    quota: one?.quota ?? "",
    weight: one?.weight ?? 1,
    limit: one?.limit ?? "",
  });
  return {
    gpu: claim(terms?.gpu),
    cpu: claim(terms?.cpu),
    memory: claim(terms?.memory),
    priority: terms?.priority ?? 100,
  };
}

/** Only what differs: a resource that is given is replaced whole. Empty is no bound. */
function updateOf(pool: string, before: Terms, after: Terms): QueueUpdate | null {
  const changes: Record<string, unknown> = {};
  for (const resource of ["gpu", "cpu", "memory"] as const) {
    if (JSON.stringify(before[resource]) === JSON.stringify(after[resource])) continue;
    const { quota, weight, limit } = after[resource];
    changes[resource] = { quota: quota.trim() || null, weight, limit: limit.trim() || null };
  }
  if (before.priority !== after.priority) changes.priority = after.priority;
  return Object.keys(changes).length > 0 ? { pools: { [pool]: changes } } : null;
}

export function QueuePanel({ row, max, onClose }: { row: Row; max: number; onClose: () => void }) {
  const view = row.project ?? row.department;
  const stored = editable(view?.pools[row.pool]?.terms);
  const [terms, setTerms] = useState(stored);
  const update = updateOf(row.pool, stored, terms);
  const kind = row.project ? "project" : "department";
  const send = async (body: QueueUpdate, dryRun: boolean, signal?: AbortSignal): Promise<unknown> => {
    const options = { path: { ref: row.id }, body, query: { dryRun }, signal };
    return (row.project ? await updateProject(options) : await updateDepartment(options)).data;
  };
  const [wanted] = useDebouncedValue(update && JSON.stringify(update), PAUSE);
  const preview = useQuery({
    queryKey: ["preview", row.id, wanted],
    queryFn: async ({ signal }) =>
      (await send(JSON.parse(wanted ?? "null") as QueueUpdate, true, signal)) as QueuePreview,
    enabled: wanted !== null,
    retry: false,
    staleTime: 0,
    gcTime: 0,
    placeholderData: keepPreviousData,
  });
  const queries = useQueryClient();
  const apply = useMutation({
    mutationFn: () => send(update as QueueUpdate, false),
    onSuccess: () => {
      tellDone(`Changed ${row.name}`);
      void queries.invalidateQueries();
    },
    onError: (error) => tellFailed(`change ${row.name}`, error),
  });
  const problem = update && (apply.error ?? preview.error) ? Problem.of(apply.error ?? preview.error) : null;
  const set = (resource: Resource, field: string, value: string | number) =>
    setTerms({ ...terms, [resource]: { ...terms[resource], [field]: value } });

  return (
    <aside className={css.panel} aria-label={`${kind} ${row.name}`}>
      <Group justify="space-between" mb="sm" wrap="nowrap">
        <strong>
          {kind} {row.name}
        </strong>
        <ActionIcon aria-label="close" color="gray" onClick={onClose}>
          <IconX size={16} />
        </ActionIcon>
      </Group>
      {row.project && (
        <p>
          <Link to="/workloads" search={{ project: row.name, phase: "unfinished" } as never}>
            {row.project.running} running, {row.project.waiting} waiting
          </Link>
        </p>
      )}
      <QuotaSlider value={terms.gpu.quota} max={max} onChange={(value) => set("gpu", "quota", value)} />
      {(["gpu", "cpu", "memory"] as const).map((resource) => (
        <TermsOf
          key={resource}
          resource={resource}
          terms={terms[resource]}
          problem={problem}
          pool={row.pool}
          onChange={(field, value) => set(resource, field, value)}
        />
      ))}
      <NumberInput
        label="Priority"
        description="who is served first from what is left over"
        value={terms.priority}
        min={0}
        max={1_000_000}
        onChange={(value) => setTerms({ ...terms, priority: Number(value) })}
        mt="sm"
        error={problem?.of(`pools.${row.pool}.priority`)}
      />
      {update && (
        <section className={css.preview} aria-live="polite" aria-label="what would happen">
          {preview.data && !problem && <PreviewText preview={preview.data} />}
          {problem && problem.faults.length === 0 && (
            <p style={{ color: "var(--bad)" }}>
              {problem.message}. {changed(problem, false)}
            </p>
          )}
          <Group mt="sm">
            <Button onClick={() => apply.mutate()} loading={apply.isPending} disabled={preview.error !== null}>
              Apply
            </Button>
            <Button variant="default" onClick={() => setTerms(stored)}>
              Drop
            </Button>
            <Copy value={commandOf(kind, row.name, row.pool, update)} label="copy as a command" />
          </Group>
        </section>
      )}
      <Remove row={row} />
    </aside>
  );
}

function commandOf(kind: string, name: string, pool: string, update: QueueUpdate): string {
  const terms: { [resource in Resource]?: Claim | null } = update.pools[pool] ?? {};
  const flags = (["gpu", "cpu", "memory"] as const).flatMap((resource) => {
    const claim = terms[resource];
    if (!claim) return [];
    return [
      `--${resource}-quota ${claim.quota ?? "unlimited"}`,
      `--${resource}-weight ${claim.weight}`,
      `--${resource}-limit ${claim.limit ?? "none"}`,
    ];
  });
  return [`aliquot ${kind}s update ${name} --pool ${pool}`, ...flags].join(" ");
}

/** The quota as a mark to drag; the preview follows. */
function QuotaSlider({ value, max, onChange }: { value: string; max: number; onChange: (value: string) => void }) {
  const now = Number(value || 0);
  const top = Math.max(8, Math.ceil(Math.max(max, now)));
  return (
    <div className={css.drag}>
      <span className="quiet">
        GPU quota, to drag: {number(now)} of {number(top)}
      </span>
      <Slider
        aria-label="GPU quota"
        value={now}
        min={0}
        max={top}
        step={top > 64 ? 1 : 0.5}
        label={(amount) => `${number(amount)} GPU`}
        onChange={(amount) => onChange(String(amount))}
        thumbLabel="GPU quota"
        size="sm"
      />
    </div>
  );
}

interface TermsProps {
  resource: Resource;
  terms: { quota: string; weight: number; limit: string };
  problem: Problem | null;
  pool: string;
  onChange: (field: string, value: string | number) => void;
}

const UNITS = { gpu: "GPU, devices", cpu: "CPU, cores", memory: "Memory" } as const;

function TermsOf({ resource, terms, problem, pool, onChange }: TermsProps) {
  const fault = (field: string) => problem?.of(`pools.${pool}.${resource}.${field}`) ?? null;
  return (
    <fieldset style={{ border: 0, padding: 0, margin: "8px 0 0" }}>
      <legend className="quiet">{UNITS[resource]}</legend>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <TextInput
          label="Quota"
          placeholder="no bound"
          value={terms.quota}
          error={fault("quota")}
          onChange={(event) => onChange("quota", event.target.value)}
        />
        <NumberInput
          label="Weight"
          value={terms.weight}
          min={0}
          error={fault("weight")}
          onChange={(value) => onChange("weight", Number(value))}
        />
        <TextInput
          label="Limit"
          placeholder="none"
          value={terms.limit}
          error={fault("limit")}
          onChange={(event) => onChange("limit", event.target.value)}
        />
      </Group>
    </fieldset>
  );
}

function Remove({ row }: { row: Row }) {
  const [isAsked, setAsked] = useState(false);
  const [, change] = useQueryState();
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      row.project ? deleteProject({ path: { ref: row.id } }) : deleteDepartment({ path: { ref: row.id } }),
    onSuccess: () => {
      tellDone(`Deleted ${row.name}`);
      change({ queue: "" });
      void queries.invalidateQueries();
    },
    onError: (error) => tellFailed(`delete ${row.name}`, error),
    onSettled: () => setAsked(false),
  });
  const kind = row.project ? "project" : "department";
  return (
    <>
      <Button variant="subtle" color="red" mt="lg" onClick={() => setAsked(true)}>
        Delete this {kind}
      </Button>
      <Confirm
        isOpen={isAsked}
        title={`Delete ${kind} ${row.name}?`}
        action="Delete"
        isBusy={remove.isPending}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsked(false)}
      >
        Its terms go; it must hold no unfinished workload{row.project ? "" : " and no project"}. Records of what it used
        are kept.
      </Confirm>
    </>
  );
}
