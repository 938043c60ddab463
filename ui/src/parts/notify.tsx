// Short words at the edge of the page about what was done.
import { notifications } from "@mantine/notifications";
import { Problem } from "@/app/problems";
import { changed } from "./Faults";

export function tellDone(message: string): void {
  notifications.show({ message, color: "green", autoClose: 4_000 });
}

export function tellFailed(what: string, error: unknown): void {
  const problem = Problem.of(error);
  const message = `${problem.message}. ${changed(problem, false)}`;
  notifications.show({ title: `Could not ${what}`, message, color: "red", autoClose: 12_000 });
}
