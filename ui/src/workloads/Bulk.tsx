// What is done with the selected workloads: asked once where it is final, with progress, a way to stop, and a result
// for each.
import { Button, Group, Modal, Progress, Table } from "@mantine/core";
import { useRef, useState } from "react";
import type { WorkloadView } from "@/api";
import { Problem } from "@/app/problems";
import { Confirm } from "@/parts/Confirm";
import { count, number } from "@/parts/format";
import { ACTIONS, type Action, consequence, doAll, type Result } from "./actions";

interface Props {
  items: readonly WorkloadView[];
  onDone: () => void;
}

interface Run {
  action: Action;
  total: number;
  results: Result[];
  started: number;
  isOver: boolean;
}

export function Bulk({ items, onDone }: Props) {
  const [asked, setAsked] = useState<Action | null>(null);
  const [run, setRun] = useState<Run | null>(null);
  const stopper = useRef(new AbortController());

  async function start(action: Action): Promise<void> {
    setAsked(null);
    const able = items.filter((item) => action.can(item));
    stopper.current = new AbortController();
    setRun({ action, total: able.length, results: [], started: performance.now(), isOver: false });
    const take = (result: Result) => setRun((before) => before && { ...before, results: [...before.results, result] });
    await doAll(action, able, take, stopper.current.signal);
    setRun((before) => before && { ...before, isOver: true });
  }

  function close(): void {
    setRun(null);
    onDone();
  }

  return (
    <>
      <span>{number(items.length)} selected</span>
      {ACTIONS.map((action) => {
        const able = items.filter((item) => action.can(item)).length;
        return (
          <Button
            key={action.name}
            variant="default"
            disabled={able === 0 || run !== null}
            onClick={() => (action.isFinal ? setAsked(action) : void start(action))}
          >
            {action.label} {able < items.length && able > 0 ? number(able) : ""}
          </Button>
        );
      })}
      <Button variant="subtle" onClick={onDone}>
        Clear
      </Button>
      {asked && (
        <Confirm
          isOpen
          title={`${asked.label} ${count(items.filter(asked.can).length, "workload")}?`}
          action={asked.label}
          onConfirm={() => void start(asked)}
          onClose={() => setAsked(null)}
        >
          <p>{consequence(asked, items.filter(asked.can))}</p>
          <p className="quiet">
            {items
              .filter(asked.can)
              .slice(0, 12)
              .map((item) => item.name)
              .join(", ")}
            {items.length > 12 && ", …"}
          </p>
        </Confirm>
      )}
      {run && <Progressing run={run} onStop={() => stopper.current.abort()} onClose={close} />}
    </>
  );
}

function Progressing({ run, onStop, onClose }: { run: Run; onStop: () => void; onClose: () => void }) {
  const failed = run.results.filter((one) => one.error !== null);
  const done = run.results.length;
  const rate = done / Math.max(0.001, (performance.now() - run.started) / 1000);
  return (
    <Modal
      opened
      onClose={run.isOver ? onClose : onStop}
      title={`${run.action.label}: ${done} of ${run.total}`}
      size="lg"
    >
      <Progress value={run.total > 0 ? (100 * done) / run.total : 100} aria-label="progress" mb="sm" />
      <p role="status">
        {done - failed.length} done, {failed.length} refused{run.isOver ? "" : `, ${number(Math.round(rate))} a second`}
        {run.isOver && done < run.total ? `; stopped, ${run.total - done} not tried` : ""}.
      </p>
      <div style={{ maxHeight: 320, overflow: "auto" }}>
        <Table verticalSpacing={2}>
          <Table.Tbody>
            {[...failed, ...run.results.filter((one) => one.error === null)].slice(0, 500).map((one) => (
              <Table.Tr key={one.id}>
                <Table.Td>{one.name}</Table.Td>
                <Table.Td>{one.error === null ? "done" : Problem.of(one.error).message}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      <Group justify="flex-end" mt="md">
        {run.isOver ? (
          <Button onClick={onClose}>Close</Button>
        ) : (
          <Button variant="default" onClick={onStop}>
            Stop here
          </Button>
        )}
      </Group>
    </Modal>
  );
}
