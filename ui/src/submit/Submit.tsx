// Will it start, where, at whose cost?
import { Button, Group, SegmentedControl, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { getWorkload, listProjects, submitWorkload } from "@/api";
import { Problem } from "@/app/problems";
import { Copy } from "@/parts/Copy";
import { changed } from "@/parts/Faults";
import { tellDone } from "@/parts/notify";
import { PageHead } from "@/parts/PageHead";
import { useQueryState } from "@/parts/url";
import {
  type Draft,
  dropDraft,
  FIRST,
  fromYaml,
  isFault,
  keepDraft,
  keptDraft,
  TEMPLATES,
  tidy,
  toCommand,
  toYaml,
  type YamlFault,
} from "./draft";
import { Form } from "./Form";
import { Outlook } from "./Outlook";
import css from "./Submit.module.css";

const PAUSE = 300;

export function Submit() {
  const [query] = useQueryState();
  const [draft, setDraft] = useState<Draft>(() => keptDraft() ?? FIRST);
  const [text, setText] = useState(() => toYaml(draft));
  const [fault, setFault] = useState<YamlFault | null>(null);

  /** The form and the text are the same thing: who is not being typed in follows. */
  function take(next: Draft, from: "form" | "text"): void {
    setDraft(next);
    keepDraft(next);
    if (from === "form") {
      setText(toYaml(next));
      setFault(null);
    }
  }

  function takeText(next: string): void {
    setText(next);
    const read = fromYaml(next);
    setFault(isFault(read) ? read : null);
    if (!isFault(read)) take(read, "text");
  }

  useFrom(query.from, (next) => take(next, "form"));
  const projects = useQuery({
    queryKey: ["projects", "names"],
    queryFn: async () => (await listProjects({ query: { limit: 1000 } })).data.items.map((one) => one.name),
  });
  const [wanted] = useDebouncedValue(JSON.stringify(tidy(draft)), PAUSE);
  const outlook = useQuery({
    queryKey: ["dry-run", wanted],
    queryFn: async ({ signal }) =>
      (await submitWorkload({ body: JSON.parse(wanted) as Draft, query: { dryRun: true }, signal })).data as never,
    enabled: fault === null,
    retry: false,
    staleTime: 0,
    gcTime: 0,
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  });
  const submit = useSubmit(draft);
  const problem = Problem.of(submit.error ?? outlook.error ?? null);
  const hasFaults = submit.error !== null || outlook.error !== null;

  return (
    <>
      <PageHead
        title="Submit"
        about="What it is, on the left; the same as a file, on the right; what would happen, below."
      >
        <SegmentedControl
          aria-label="begin with"
          value=""
          data={TEMPLATES.map((one) => ({ value: one.name, label: one.name }))}
          onChange={(name) =>
            take({ ...(TEMPLATES.find((one) => one.name === name)?.draft ?? {}), project: draft.project }, "form")
          }
        />
      </PageHead>
      <div className={css.sides}>
        <Form
          draft={draft}
          projects={projects.data ?? []}
          problem={hasFaults ? problem : null}
          onChange={(next) => take(next, "form")}
        />
        <div>
          <Group justify="space-between" mb={4}>
            <strong>definition.yaml</strong>
            <Group gap={0}>
              <Copy value={text} label="copy the YAML" />
            </Group>
          </Group>
          <Textarea
            aria-label="the definition as YAML"
            value={text}
            onChange={(event) => takeText(event.target.value)}
            autosize
            minRows={14}
            maxRows={32}
            error={fault && `line ${fault.line}: ${fault.message}`}
            spellCheck={false}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12 } }}
          />
          <Group gap={4} mt="sm" wrap="nowrap">
            <code className={css.command}>{toCommand(draft)}</code>
            <Copy value={toCommand(draft)} label="copy the command" />
          </Group>
        </div>
      </div>
      <Outlook
        result={outlook.data}
        problem={outlook.error && Problem.of(outlook.error)}
        isLooking={outlook.isFetching}
        onTake={(change) => take({ ...draft, ...change }, "form")}
      >
        <Button
          size="sm"
          loading={submit.isPending}
          disabled={fault !== null || outlook.error !== null || submit.isSuccess}
          onClick={() => submit.mutate()}
        >
          Submit
        </Button>
        {submit.error && (
          <span role="alert" style={{ color: "var(--bad)" }}>
            {Problem.of(submit.error).message}. {changed(Problem.of(submit.error), false)}
          </span>
        )}
      </Outlook>
    </>
  );
}

/** Fill from a workload that is there. */
function useFrom(ref: string | undefined, onDraft: (draft: Draft) => void): void {
  const source = useQuery({
    queryKey: ["workload", ref],
    queryFn: async () => (await getWorkload({ path: { ref: ref ?? "" } })).data,
    enabled: ref !== undefined,
  });
  const taken = useRef<string | null>(null);
  useEffect(() => {
    if (source.data === undefined || taken.current === ref) return;
    taken.current = ref ?? null;
    onDraft({ ...source.data.definition, name: null, project: source.data.project });
  }, [source.data, ref, onDraft]);
}

/** One key for one thing that is wanted: a double click, or a request that is sent again, makes one workload. */
function useSubmit(draft: Draft) {
  const navigate = useNavigate();
  const key = useRef({ for: "", key: "" });
  return useMutation({
    mutationFn: async () => {
      const body = tidy(draft);
      const what = JSON.stringify(body);
      if (key.current.for !== what) key.current = { for: what, key: crypto.randomUUID() };
      return (await submitWorkload({ body, headers: { "Idempotency-Key": key.current.key } })).data as {
        id: string;
        name: string;
      };
    },
    onSuccess: (made) => {
      dropDraft();
      tellDone(`Submitted ${made.name}`);
      void navigate({ to: "/workloads/$ref", params: { ref: made.id } });
    },
  });
}
