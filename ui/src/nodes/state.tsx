// The state of a node: icon, word and colour.
import { IconAlertTriangle, IconBan, IconCircleCheck } from "@tabler/icons-react";
import type { NodeView } from "@/api";

export function stateWord(node: NodeView): "ready" | "not ready" | "cordoned" {
  if (!node.isReady) return "not ready";
  return node.isCordoned ? "cordoned" : "ready";
}

const LOOKS = {
  ready: { icon: IconCircleCheck, colour: "var(--good)" },
  "not ready": { icon: IconAlertTriangle, colour: "var(--bad)" },
  cordoned: { icon: IconBan, colour: "var(--warning)" },
} as const;

export function NodeState({ node }: { node: NodeView }) {
  const word = stateWord(node);
  const { icon: Icon, colour } = LOOKS[word];
  return (
    <span style={{ color: colour, whiteSpace: "nowrap" }}>
      <Icon size={14} aria-hidden style={{ verticalAlign: "text-bottom" }} /> {word}
    </span>
  );
}
