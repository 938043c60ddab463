// What a change of terms would do, as the engine worked it out.
import type { QueuePreview } from "@/api";
import { count, gpus } from "@/parts/format";

const SHOWN = 8;

export function PreviewText({ preview }: { preview: QueuePreview }) {
  const { starts, evicts, fairShares, waitsBefore, waitsAfter, isComplete } = preview;
  const isNothing = starts.length === 0 && evicts.length === 0 && fairShares.length === 0;
  return (
    <>
      {isNothing && <p>Nothing starts or ends by this now.</p>}
      {starts.length > 0 && (
        <List
          title={`${count(starts.length, "workload")} would start`}
          items={starts.map(
            (one) =>
              `${one.name} of ${one.project} (${one.gpu} GPU)${one.places.length > 0 ? ` on ${one.places.join(", ")}` : ""}`,
          )}
        />
      )}
      {evicts.length > 0 && (
        <List
          title={`${count(evicts.length, "workload")} would be evicted`}
          items={evicts.map(
            (one) => `${one.name} of ${one.project} (${one.gpu} GPU)${one.forName ? ` for ${one.forName}` : ""}`,
          )}
        />
      )}
      {fairShares.length > 0 && (
        <List
          title="Fair shares"
          items={fairShares.map(
            (one) => `${one.queue}: ${gpus(one.beforeMilliGpus)} → ${gpus(one.afterMilliGpus)} GPU`,
          )}
        />
      )}
      {waitsBefore !== waitsAfter && (
        <p>
          {waitsBefore} wait now, {waitsAfter} would.
        </p>
      )}
      {!isComplete && <p className="quiet">More would follow than a preview looks at.</p>}
    </>
  );
}

function List({ title, items }: { title: string; items: readonly string[] }) {
  return (
    <>
      <strong>{title}</strong>
      <ul>
        {items.slice(0, SHOWN).map((text) => (
          <li key={text}>{text}</li>
        ))}
        {items.length > SHOWN && <li>and {items.length - SHOWN} more</li>}
      </ul>
    </>
  );
}
