// The keys that hold on every page. `g` and a letter go somewhere; none does anything while one types.
import { spotlight } from "@mantine/spotlight";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { PLACES } from "./places";

export const KEYS: readonly [string, string][] = [
  ["Ctrl K", "go anywhere, do anything"],
  ["/", "filter"],
  ["j, k", "next and previous row"],
  ["Home, End", "first and last row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["c", "submit a workload"],
  ...PLACES.map(({ key, label }): [string, string] => [`g ${key}`, label]),
  ["?", "this list"],
];

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;
}

export function useKeys(onHelp: () => void): void {
  const navigate = useNavigate();
  useEffect(() => {
    let isGoing = false;
    function onKey(event: KeyboardEvent): void {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        spotlight.open(); // Also while its part of the page is still being loaded.
        event.preventDefault();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || event.defaultPrevented) return;
      const place = isGoing ? PLACES.find((one) => one.key === event.key) : undefined;
      isGoing = event.key === "g";
      if (place) void navigate({ to: place.to });
      else if (event.key === "c") void navigate({ to: "/submit" });
      else if (event.key === "?") onHelp();
      else if (event.key === "/") document.querySelector<HTMLElement>("[data-filter]")?.focus();
      else if (event.key === "j" || event.key === "k")
        document.querySelector<HTMLElement>("[data-keys=table]")?.focus();
      else return;
      event.preventDefault();
    }
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [navigate, onHelp]);
}
