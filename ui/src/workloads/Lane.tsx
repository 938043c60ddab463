// One lane from submission to now: waits with their reasons, runs, evictions with receipts, restarts.
import { Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getTimeline, listReceipts, type Receipt, type Span, type WorkloadView } from "@/api";
import { now } from "@/live/clock";
import { absolute, duration, words } from "@/parts/format";
import { useTick } from "@/parts/When";
import css from "./Lane.module.css";

interface Part {
  span: Span;
  left: number;
  width: number;
  text: string;
}

/** Where each span lies between the first and the last moment, in percent. */
export function partsOf(spans: readonly Span[], until: number): Part[] {
  const first = spans[0];
  if (first === undefined) return [];
  const from = Date.parse(first.from);
  const whole = Math.max(1, until - from);
  return spans.map((span) => {
    const start = Date.parse(span.from);
    const end = span.to === null ? until : Date.parse(span.to);
    const text = `${words(span.kind)} ${duration((end - start) / 1000)}`;
    return { span, text, left: (100 * (start - from)) / whole, width: Math.max(0.3, (100 * (end - start)) / whole) };
  });
}

export function Lane({ item }: { item: WorkloadView }) {
  const line = useQuery({
    queryKey: ["workload", item.id, "timeline"],
    queryFn: async () => (await getTimeline({ path: { ref: item.id } })).data.spans,
    staleTime: 0,
  });
  const receipts = useQuery({
    queryKey: ["workload", item.id, "receipts"],
    queryFn: async () => (await listReceipts({ query: { workload: item.id, limit: 100 } })).data.items,
    enabled: item.evictions > 0,
  });
  useTick();
  const spans = line.data ?? [];
  const until = item.finished === null ? now() : Date.parse(item.finished);
  if (spans.length === 0) return null;
  const known = new Map(receipts.data?.map((one) => [one.id, one]));
  return (
    <section aria-label="what happened" style={{ margin: "12px 0" }}>
      <div className={css.lane} role="list">
        {partsOf(spans, until).map(({ span, left, width, text }) => (
          <Tooltip
            key={span.from + span.kind}
            label={<About span={span} text={text} receipt={known.get(span.receipt ?? "")} />}
          >
            <div
              role="listitem"
              tabIndex={0}
              className={css.span}
              data-kind={span.kind}
              aria-label={text}
              style={{ left: `${left}%`, width: `${width}%` }}
            >
              {width > 8 && text}
            </div>
          </Tooltip>
        ))}
      </div>
      <Receipts items={receipts.data ?? []} />
    </section>
  );
}

function About({ span, text, receipt }: { span: Span; text: string; receipt: Receipt | undefined }) {
  return (
    <>
      <div>{text}</div>
      <div>from {absolute(span.from)}</div>
      {span.to && <div>to {absolute(span.to)}</div>}
      {span.reason && <div>{span.reason.message}</div>}
      {span.places.length > 0 && <div>on {span.places.join(", ")}</div>}
      {span.exit && <div>{span.exit}</div>}
      {receipt && <div>{receipt.explanation}</div>}
    </>
  );
}

function Receipts({ items }: { items: readonly Receipt[] }) {
  if (items.length === 0) return null;
  return (
    <details>
      <summary>{items.length === 1 ? "1 receipt of an eviction" : `${items.length} receipts of evictions`}</summary>
      <ul className={css.receipts}>
        {items.map((one) => (
          <li key={one.id}>
            <time dateTime={one.evicted}>{absolute(one.evicted)}</time>: {words(one.rule)}
            {one.beneficiaryName && <> for {one.beneficiaryName}</>}: {one.explanation}. At most{" "}
            {duration(one.ranSeconds)} of work were lost.
            {one.rejected.length > 0 && (
              <div className="quiet">Not taken instead: {one.rejected.slice(0, 8).join("; ")}</div>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}
