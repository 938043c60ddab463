// How fresh the page is. While the stream is cut it says so, and how old what one sees is.
import { Badge } from "@mantine/core";
import { duration } from "@/parts/format";
import { useTick } from "@/parts/When";
import { type Stream, useLiveness } from "./stream";

export function LiveBar({ stream }: { stream: Stream }) {
  const { state, heard } = useLiveness(stream);
  useTick();
  if (state === "live")
    return (
      <span className="quiet" title="changes show as they happen">
        ● live
      </span>
    );
  const old = duration((performance.now() - heard) / 1000);
  const text = state === "connecting" ? "connecting" : `live updates stopped, ${old} old, reconnecting`;
  return (
    <Badge color={state === "stale" ? "orange" : "gray"} variant="light" tt="none" size="lg" radius="sm" role="status">
      {text}
    </Badge>
  );
}
