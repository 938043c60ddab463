import { expect, test } from "vitest";
import { fromYaml, isFault, quoted, splitWords, tidy, toCommand, toYaml } from "./draft";

test("what is empty is left to the server", () => {
  expect(tidy({ name: "", gpu: "1", command: [], environment: {}, priority: null, retries: 0 })).toEqual({
    gpu: "1",
    retries: 0,
  });
});

test("YAML goes there and back", () => {
  const draft = { name: "a", gpu: "0.5", command: ["python", "-c", "print('x: y')"], environment: { A: "1" } };
  expect(fromYaml(toYaml(draft))).toEqual(draft);
});

test("what is no YAML is told with its line", () => {
  const read = fromYaml("name: a\ngpu: [1\nkind: training\n");
  expect(isFault(read) && read.line).toBeGreaterThanOrEqual(2);
  expect(fromYaml("- a")).toEqual({ line: 1, message: "this is not a list of fields" });
  expect(fromYaml("")).toEqual({});
});

test("words are split as a shell does and quoted so that a shell gives them back", () => {
  expect(splitWords(`python -c 'print("a b")' "" x\\ny`)).toEqual(["python", "-c", 'print("a b")', "", "x\\ny"]);
  for (const word of ["plain", "a b", "it's", "$HOME", "", "a;b"])
    expect(splitWords(quoted(word).replace(`'"'"'`, `'"'"'`))).toEqual([word]);
});

test("the command says what the form says", () => {
  expect(toCommand({ name: "a", gpu: "2x0.5", replicas: 3, command: ["echo", "a b"] })).toBe(
    "aliquot run --name a --gpu 2x0.5 --replicas 3 -- echo 'a b'",
  );
  expect(toCommand({ script: "x" })).toBe("aliquot submit definition.yaml");
});
