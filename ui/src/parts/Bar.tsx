// A bullet bar: what is held against marks for fair share, quota and limit, in words for those who do not see it.
import { Tooltip } from "@mantine/core";
import css from "./Bar.module.css";

interface Props {
  value: number;
  max: number;
  colour?: string;
  marks?: readonly { at: number; label: string; kind: "quota" | "fair" | "limit" }[];
  label: string;
}

export function Bar({ value, max, colour, marks = [], label }: Props) {
  const part = (amount: number) => `${max > 0 ? Math.min(100, Math.max(0, (amount / max) * 100)) : 0}%`;
  return (
    <Tooltip label={label}>
      <div className={css.track} role="img" aria-label={label}>
        <div className={css.fill} style={{ width: part(value), background: colour ?? "var(--info)" }} />
        {marks.map((mark) => (
          <div key={mark.kind} className={css.mark} data-kind={mark.kind} style={{ left: part(mark.at) }} />
        ))}
      </div>
    </Tooltip>
  );
}
