// The output of a workload, followed live to its end: search, wrap, time stamps, download; a million lines.
import { ActionIcon, Button, Group, Switch, TextInput } from "@mantine/core";
import { IconArrowDown, IconChevronDown, IconChevronUp, IconDownload } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useEffect, useMemo, useRef, useState } from "react";
import type { WorkloadDetail } from "@/api";
import { number } from "@/parts/format";
import { useQueryState } from "@/parts/url";
import css from "./Logs.module.css";
import { type Line, shown } from "./logText";
import { useLog } from "./useLog";

const LINE = 18;
const LONGEST = 4_000;

export default function Logs({ item }: { item: WorkloadDetail }) {
  const [query, change] = useQueryState();
  const isWrapped = query.wrap === "1";
  const hasTimes = query.times === "1";
  const { log, count, state } = useLog(item.id, item.attempt);
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const [seen, setSeen] = useState(0);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE,
    overscan: 30,
  });

  useEffect(() => {
    if (isAtEnd && count > 0) {
      virtual.scrollToIndex(count - 1, { align: "end" });
      setSeen(count);
    }
  }, [count, isAtEnd, virtual]);

  function onScroll(): void {
    const place = scroller.current;
    if (place === null) return;
    const isNow = place.scrollHeight - place.scrollTop - place.clientHeight < 2 * LINE;
    setAtEnd(isNow);
    if (isNow) setSeen(count);
  }

  return (
    <div className={css.whole}>
      <Group gap="sm" mb="sm">
        <Search
          log={log}
          count={count}
          onGo={(at) => {
            setAtEnd(false);
            virtual.scrollToIndex(at, { align: "center" });
          }}
        />
        <Switch
          label="wrap"
          checked={isWrapped}
          onChange={(event) => change({ wrap: event.target.checked ? "1" : "" })}
        />
        <Switch
          label="time stamps"
          checked={hasTimes}
          onChange={(event) => change({ times: event.target.checked ? "1" : "" })}
        />
        <ActionIcon
          component="a"
          href={`/api/v1/workloads/${item.id}/logs/text${hasTimes ? "?timestamps=true" : ""}`}
          download
          aria-label="download the log"
          color="gray"
        >
          <IconDownload size={16} />
        </ActionIcon>
        <span className="quiet" role="status">
          {number(count)} lines{log.dropped > 0 && `, ${number(log.dropped)} older ones only in the download`}, {state}
        </span>
      </Group>
      <div
        ref={scroller}
        className={css.scroller}
        tabIndex={0}
        onScroll={onScroll}
        role="log"
        aria-label="output"
        aria-live="off"
      >
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((row) => {
            const line = log.at(row.index);
            return (
              line && (
                <div
                  key={row.key}
                  data-index={row.index}
                  ref={isWrapped ? virtual.measureElement : undefined}
                  className={isWrapped ? css.wrapped : css.line}
                  style={{ transform: `translateY(${row.start}px)` }}
                >
                  <Text line={line} hasTime={hasTimes} hasIndex={item.replicas > 1} wanted={query.find ?? ""} />
                </div>
              )
            );
          })}
        </div>
        {count === 0 && <p className="quiet">{emptyText(item)}</p>}
      </div>
      {!isAtEnd && (
        <Button className={css.down} size="xs" leftSection={<IconArrowDown size={14} />} onClick={() => setAtEnd(true)}>
          {count > seen ? `${number(count - seen)} new lines` : "to the end"}
        </Button>
      )}
    </div>
  );
}

function emptyText(item: WorkloadDetail): string {
  return item.pods.length === 0 ? "It has not run yet, so it has written nothing." : "It has written nothing yet.";
}

interface TextProps {
  line: Line;
  hasTime: boolean;
  hasIndex: boolean;
  wanted: string;
}

const Text = memo(function Text({ line, hasTime, hasIndex, wanted }: TextProps) {
  const [isWhole, setWhole] = useState(false);
  const text = shown(line.text);
  const cut = isWhole ? text : text.slice(0, LONGEST);
  return (
    <>
      {hasTime && <span className={css.time}>{new Date(line.time).toISOString().slice(0, 23).replace("T", " ")} </span>}
      {hasIndex && <span className={css.time}>{line.index} </span>}
      <span data-channel={line.channel} className={css.text}>
        {wanted ? <Marked text={cut} wanted={wanted} /> : cut}
      </span>
      {cut.length < text.length && (
        <button type="button" className={css.more} onClick={() => setWhole(true)}>
          … {number(text.length - cut.length)} more characters
        </button>
      )}
    </>
  );
});

function Marked({ text, wanted }: { text: string; wanted: string }) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return text;
  const end = at + wanted.length;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, end)}</mark>
      {text.slice(end)}
    </>
  );
}

interface SearchProps {
  log: { find: (text: string) => number[] };
  count: number;
  onGo: (at: number) => void;
}

function Search({ log, count, onGo }: SearchProps) {
  const [query, change] = useQueryState();
  const wanted = query.find ?? "";
  const [at, setAt] = useState(0);
  // Looked for again only when a thousand lines more have come: a million are not searched for each.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the log grows in place
  const found = useMemo(() => log.find(wanted), [log, wanted, Math.floor(count / 1000)]);

  function go(step: number): void {
    if (found.length === 0) return;
    const next = (at + step + found.length) % found.length;
    setAt(next);
    onGo(found[next] ?? 0);
  }

  function onKey(event: KeyboardEvent): void {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
  }

  return (
    <Group gap={4} wrap="nowrap">
      <TextInput
        aria-label="search the log"
        placeholder="search  /"
        value={wanted}
        data-filter
        w={200}
        onKeyDown={onKey}
        onChange={(event) => {
          setAt(-1);
          change({ find: event.target.value });
        }}
      />
      <ActionIcon aria-label="previous hit" color="gray" disabled={found.length === 0} onClick={() => go(-1)}>
        <IconChevronUp size={16} />
      </ActionIcon>
      <ActionIcon aria-label="next hit" color="gray" disabled={found.length === 0} onClick={() => go(1)}>
        <IconChevronDown size={16} />
      </ActionIcon>
      {wanted && (
        <span className="quiet">
          {found.length === 0 ? "no hit" : `${Math.max(0, at) + 1} of ${number(found.length)}`}
        </span>
      )}
    </Group>
  );
}
