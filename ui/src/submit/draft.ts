// A definition while it is being written: what is in the form, as the API takes it, as YAML and as a command line.
import { parse, stringify, YAMLParseError } from "yaml";
import type { Definition } from "@/api";

const KEPT = "aliquot.submit.draft";

export type Draft = Definition;

/** Shapes to start from. */
export const TEMPLATES: readonly { name: string; about: string; draft: Draft }[] = [
  {
    name: "Training",
    about: "a program that runs to its end",
    draft: { kind: "training", gpu: "1", command: ["python", "train.py"] },
  },
  {
    name: "Workspace",
    about: "a notebook or a shell, on a part of a device",
    draft: { kind: "workspace", gpu: "0.5", command: ["jupyter", "lab", "--no-browser"] },
  },
  {
    name: "Script",
    about: "a few lines of shell",
    draft: { kind: "training", gpu: "1", script: "#!/bin/sh\nset -eu\nnvidia-smi\n" },
  },
  {
    name: "Gang",
    about: "pods that start together or not at all",
    draft: { kind: "training", gpu: "1", replicas: 4, command: ["python", "train.py"] },
  },
];

export const FIRST: Draft = TEMPLATES[0]?.draft ?? {};

/** Without what is empty, so that the server's own defaults hold. */
export function tidy(draft: Draft): Draft {
  const entries = Object.entries(draft).filter(([, value]) => {
    if (value === null || value === undefined || value === "") return false;
    if (Array.isArray(value)) return value.length > 0;
    return typeof value !== "object" || Object.keys(value).length > 0;
  });
  return Object.fromEntries(entries) as Draft;
}

export function toYaml(draft: Draft): string {
  return stringify(tidy(draft), { lineWidth: 0 });
}

export interface YamlFault {
  line: number;
  message: string;
}

/** What a text says, or where it cannot be read. */
export function fromYaml(text: string): Draft | YamlFault {
  try {
    const read: unknown = parse(text, { uniqueKeys: true, maxAliasCount: 20 });
    if (read === null || read === undefined) return {};
    if (typeof read !== "object" || Array.isArray(read)) return { line: 1, message: "this is not a list of fields" };
    return read as Draft;
  } catch (error) {
    if (error instanceof YAMLParseError)
      return { line: error.linePos?.[0].line ?? 1, message: error.message.split("\n")[0] ?? "not YAML" };
    throw error;
  }
}

export function isFault(read: Draft | YamlFault): read is YamlFault {
  return "line" in read && "message" in read;
}

/** A word of a shell, quoted where it has to be. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Words as a person types them: quotes keep words together. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word = "";
  let quote = "";
  let isOpen = false;
  for (const letter of text) {
    if (quote !== "") {
      if (letter === quote) quote = "";
      else word += letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      isOpen = true;
    } else if (/\s/.test(letter)) {
      if (word !== "" || isOpen) words.push(word);
      word = "";
      isOpen = false;
    } else word += letter;
  }
  if (word !== "" || isOpen) words.push(word);
  return words;
}

/** The same as a command, where the command line can say it: a script needs a file. */
export function toCommand(draft: Draft): string {
  const { command, script, ...rest } = tidy(draft);
  if (script || rest.environment || rest.labels) return "aliquot submit definition.yaml";
  const flags: [string, unknown][] = [
    ["--name", rest.name],
    ["--project", rest.project],
    ["--kind", rest.kind === "workspace" ? "workspace" : undefined],
    ["--gpu", rest.gpu],
    ["--cpu", rest.cpu],
    ["--memory", rest.memory],
    ["--replicas", rest.replicas && rest.replicas > 1 ? rest.replicas : undefined],
    ["--priority", rest.priority],
    ["--max-run-time", rest.maxRunTime],
    ["--retries", rest.retries || undefined],
  ];
  const said = flags.flatMap(([flag, value]) => (value === undefined ? [] : [flag, quoted(String(value))]));
  return ["aliquot run", ...said, "--", ...(command ?? []).map(quoted)].join(" ");
}

export function keepDraft(draft: Draft): void {
  sessionStorage.setItem(KEPT, JSON.stringify(draft));
}

export function keptDraft(): Draft | null {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
    return typeof kept === "object" ? (kept as Draft | null) : null;
  } catch {
    return null;
  }
}

export function dropDraft(): void {
  sessionStorage.removeItem(KEPT);
}
