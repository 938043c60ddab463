// The fields of a definition. What the server says of a field stands at the field, and what was typed is kept.
import { Autocomplete, NumberInput, Select, Switch, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Problem } from "@/app/problems";
import { type Draft, quoted, splitWords } from "./draft";
import css from "./Submit.module.css";

interface Props {
  draft: Draft;
  projects: readonly string[];
  problem: Problem | null;
  onChange: (draft: Draft) => void;
}

type Text =
  | "name"
  | "gpu"
  | "cpu"
  | "memory"
  | "maxRunTime"
  | "workingDirectory"
  | "gracePeriod"
  | "retryBackOff"
  | "ttlAfterFinish";

export function Form({ draft, projects, problem, onChange }: Props) {
  const fault = (field: string) => problem?.of(field) ?? null;
  const text = (field: Text, label: string, description: string) => (
    <TextInput
      label={label}
      description={description}
      value={String(draft[field] ?? "")}
      error={fault(field)}
      autoComplete="off"
      maxLength={4096}
      onChange={(event) => onChange({ ...draft, [field]: event.target.value })}
    />
  );
  const isScript = draft.script !== undefined && draft.script !== null;

  return (
    <form className={css.fields} onSubmit={(event) => event.preventDefault()} aria-label="the definition as a form">
      {text("name", "Name", "made up if left out")}
      <Autocomplete
        label="Project"
        description="whose quota it counts against"
        size="xs"
        data={[...projects]}
        limit={20}
        value={draft.project ?? ""}
        placeholder="default"
        error={fault("project")}
        onChange={(project) => onChange({ ...draft, project })}
      />
      <Select
        label="Kind"
        description="a workspace is not preempted by default"
        allowDeselect={false}
        data={["training", "workspace"]}
        value={draft.kind ?? "training"}
        error={fault("kind")}
        onChange={(kind) => onChange({ ...draft, kind: kind as Draft["kind"] })}
      />
      {text("gpu", "GPU", "for each pod: 1, 0.5, 20Gi, 2x0.5; empty: none")}
      <NumberInput
        label="Replicas"
        description="pods that start together or not at all"
        min={1}
        max={1000}
        value={draft.replicas ?? 1}
        error={fault("replicas")}
        allowDecimal={false}
        onChange={(replicas) => onChange({ ...draft, replicas: replicas === "" ? undefined : Number(replicas) })}
      />
      <TextInput
        label="Priority"
        description="0 to 1000, or very-low, low, medium, high, very-high"
        autoComplete="off"
        value={String(draft.priority ?? "")}
        error={fault("priority")}
        onChange={(event) => onChange({ ...draft, priority: priorityOf(event.target.value) })}
      />
      {text("cpu", "CPU", "cores for each pod: 2, 500m; empty: not counted")}
      {text("memory", "Memory", "for each pod: 8Gi; empty: not counted")}
      <div className={css.wide}>
        <Switch
          label="a script instead of a command"
          checked={isScript}
          mb={4}
          onChange={(event) =>
            onChange(
              event.target.checked
                ? { ...draft, command: null, script: "#!/bin/sh\n" }
                : { ...draft, script: null, command: [] },
            )
          }
        />
        {isScript ? (
          <Textarea
            aria-label="Script"
            value={draft.script ?? ""}
            error={fault("script")}
            autosize
            minRows={4}
            maxRows={16}
            spellCheck={false}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12 } }}
            onChange={(event) => onChange({ ...draft, script: event.target.value })}
          />
        ) : (
          <CommandInput
            words={draft.command ?? []}
            error={fault("command")}
            onChange={(command) => onChange({ ...draft, command })}
          />
        )}
      </div>
      <Environment draft={draft} error={fault("environment")} onChange={onChange} />
      {text("maxRunTime", "At most", "2h, 90s; lets others know when it is their turn")}
      <NumberInput
        label="Retries"
        description="restarts after a failure"
        min={0}
        max={100}
        allowDecimal={false}
        value={draft.retries ?? 0}
        error={fault("retries")}
        onChange={(retries) => onChange({ ...draft, retries: retries === "" ? undefined : Number(retries) })}
      />
      {text("workingDirectory", "Working directory", "absolute; empty: a folder of its own")}
      {text("gracePeriod", "Grace period", "between TERM and KILL when it is ended: 30s")}
      <Select
        label="Preemptible"
        description="whether others may take its place"
        clearable
        placeholder="as its kind"
        data={[
          { value: "true", label: "yes" },
          { value: "false", label: "no" },
        ]}
        value={draft.preemptible === null || draft.preemptible === undefined ? null : String(draft.preemptible)}
        onChange={(value) => onChange({ ...draft, preemptible: value === null ? null : value === "true" })}
      />
      {text("ttlAfterFinish", "Deleted after", "so long after its end, with files and logs: 7d")}
    </form>
  );
}

function priorityOf(text: string): number | string | null {
  if (text === "") return null;
  return /^\d+$/.test(text) ? Number(text) : text;
}

interface CommandProps {
  words: readonly string[];
  error: string | null;
  onChange: (words: string[]) => void;
}

/** What is typed stays as it is typed; it is the words that count. */
function CommandInput({ words, error, onChange }: CommandProps) {
  const [typed, setTyped] = useState(() => words.map(quoted).join(" "));
  const isSame = JSON.stringify(splitWords(typed)) === JSON.stringify(words);
  return (
    <TextInput
      label="Command"
      description="the program and its arguments; quotes keep words together; no shell"
      value={isSame ? typed : words.map(quoted).join(" ")}
      error={error}
      autoComplete="off"
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12 } }}
      onChange={(event) => {
        setTyped(event.target.value);
        onChange(splitWords(event.target.value));
      }}
    />
  );
}

function Environment({
  draft,
  error,
  onChange,
}: {
  draft: Draft;
  error: string | null;
  onChange: (draft: Draft) => void;
}) {
  const [typed, setTyped] = useState("");
  const current = Object.entries(draft.environment ?? {})
    .map(([name, value]) => `${name}=${String(value)}`)
    .join("\n");
  const isSame = JSON.stringify(variables(typed)) === JSON.stringify(draft.environment ?? {});
  return (
    <Textarea
      className={css.wide}
      label="Environment"
      description="a line for each: NAME=value"
      autosize
      minRows={1}
      maxRows={8}
      spellCheck={false}
      value={isSame ? typed : current}
      error={error}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12 } }}
      onChange={(event) => {
        setTyped(event.target.value);
        onChange({ ...draft, environment: variables(event.target.value) });
      }}
    />
  );
}

function variables(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.includes("="));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}
