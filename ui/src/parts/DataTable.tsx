// A dense table of any size: rows are drawn only where one looks, change in place, and are reached by the keyboard.
// What is chosen (order, columns, the row that is open) is in the URL; what is selected is not.
import { Skeleton } from "@mantine/core";
import {
  type Row as CoreRow,
  columnResizingFeature,
  columnSizingFeature,
  columnVisibilityFeature,
  type RowSelectionState,
  rowSelectionFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { type LiveRows, useLiveRow } from "@/live/rows";
import css from "./DataTable.module.css";
import type { Value } from "./exports";
import { TableTools } from "./TableTools";
import { useQueryState } from "./url";

const ROW_HEIGHT = 32;
const HEAD_HEIGHT = 32;

export interface Column<Row> {
  id: string;
  header: string;
  /** Stands in the header, as `GPU` or `GiB`. */
  unit?: string;
  width: number;
  isNumber?: boolean;
  /** The name by which rows can be put in order; without one they cannot. */
  sort?: string;
  /** What is exported and copied, and shown where there is no `cell`. */
  value: (row: Row) => Value;
  cell?: (row: Row) => ReactNode;
  /** Shown only when asked for. */
  isExtra?: boolean;
}

interface Props<Row extends { id: string }> {
  /** Names the table in files and to screen readers, as "workloads". */
  name: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** How many there are on the server; more than `rows` while not all are loaded. */
  total?: number;
  isLoading?: boolean;
  /** The order where the URL has none, as `-created`. */
  order?: string;
  live?: LiveRows<Row>;
  /** Filters and buttons on the left above the table. */
  tools?: ReactNode;
  /** What is done with selected rows; without it nothing can be selected. */
  bulk?: (rows: readonly Row[], clear: () => void) => ReactNode;
  empty: ReactNode;
  onOpen?: (row: Row) => void;
  /** The end of what is loaded comes near. */
  onEnd?: () => void;
  /** Height of the whole, as CSS. */
  height?: string;
}

const features = tableFeatures({
  columnVisibilityFeature,
  columnSizingFeature,
  columnResizingFeature,
  rowSelectionFeature,
});

export function DataTable<Row extends { id: string }>(props: Props<Row>) {
  const {
    name,
    columns,
    rows,
    total = rows.length,
    isLoading = false,
    live,
    tools,
    bulk,
    empty,
    onOpen,
    onEnd,
  } = props;
  const [query, change] = useQueryState();
  const sort = query.sort ?? props.order;
  const asked = query.columns;
  const [selection, setSelection] = useState<RowSelectionState>({});
  const scroller = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(-1);

  const visibility = useMemo(() => {
    const chosen = asked?.split(",");
    return Object.fromEntries(columns.map((one) => [one.id, chosen?.includes(one.id) ?? !one.isExtra]));
  }, [columns, asked]);
  const definitions = useMemo(
    () => columns.map((one) => ({ id: one.id, accessorFn: one.value, size: one.width, minSize: 48 })),
    [columns],
  );
  const table = useTable({
    features,
    columns: definitions,
    data: rows as Row[],
    getRowId: (row: Row) => row.id,
    state: { columnVisibility: visibility, rowSelection: selection },
    onRowSelectionChange: setSelection,
    columnResizeMode: "onChange",
  });
  const shown = columns.filter((one) => visibility[one.id]);
  const sizes = table.state.columnSizing;
  const widths = shown.map((one) => sizes[one.id] ?? one.width);
  const template = [
    ...(bulk ? ["32px"] : []),
    ...shown.map((_, index) => (index === shown.length - 1 ? `minmax(${widths[index]}px, 1fr)` : `${widths[index]}px`)),
  ].join(" ");
  const least = widths.reduce((sum, width) => sum + width, bulk ? 32 : 0);
  const model = table.getRowModel().rows;
  const selected = useMemo(() => rows.filter((row) => selection[row.id]), [rows, selection]);
  const clear = () => setSelection({});

  const virtual = useVirtualizer({
    count: model.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => model[index]?.id ?? index,
    overscan: 8,
    scrollPaddingStart: HEAD_HEIGHT,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (onEnd && model.length < total && last >= model.length - 50) onEnd();
  }, [last, model.length, total, onEnd]);

  function moveTo(index: number): void {
    const to = Math.max(0, Math.min(model.length - 1, index));
    setCurrent(to);
    virtual.scrollToIndex(to);
  }

  function onKey(event: KeyboardEvent): void {
    if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select")) return;
    const steps: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
    const step = steps[event.key];
    const row = model[current];
    if (step !== undefined) moveTo(current + step);
    else if (event.key === "Home") moveTo(0);
    else if (event.key === "End") moveTo(model.length - 1);
    else if (event.key === "Enter" && row && event.target === scroller.current) onOpen?.(row.original);
    else if ((event.key === "x" || event.key === " ") && row && bulk) row.toggleSelected();
    else if (event.key === "Escape" && selected.length > 0) clear();
    else return;
    event.preventDefault();
  }

  return (
    <div className={css.whole} style={{ height: props.height ?? "100%" }}>
      <TableTools
        name={name}
        columns={columns}
        shown={shown}
        rows={selected.length > 0 ? selected : rows}
        isPart={selected.length > 0}
        live={live}
        onColumns={(ids) => change({ columns: ids?.join(",") })}
      >
        {selected.length > 0 && bulk ? bulk(selected, clear) : tools}
      </TableTools>
      <div
        ref={scroller}
        className={css.scroller}
        tabIndex={0}
        onKeyDown={onKey}
        role="table"
        data-keys="table"
        aria-label={name}
        aria-rowcount={total + 1}
        aria-colcount={shown.length + (bulk ? 1 : 0)}
        aria-busy={isLoading}
      >
        <div role="rowgroup" className={css.head} style={{ minWidth: least }}>
          <div role="row" aria-rowindex={1} className={css.row} style={{ gridTemplateColumns: template }}>
            {bulk && (
              <div role="columnheader" className={css.check}>
                <input
                  type="checkbox"
                  aria-label="select all that are loaded"
                  disabled={model.length === 0}
                  checked={model.length > 0 && selected.length === model.length}
                  onChange={(event) => table.toggleAllRowsSelected(event.target.checked)}
                />
              </div>
            )}
            {shown.map((one) => (
              <Head
                key={one.id}
                column={one}
                sort={sort}
                onSort={(value) => change({ sort: value })}
                onResize={table
                  .getFlatHeaders()
                  .find((header) => header.id === one.id)
                  ?.getResizeHandler()}
              />
            ))}
          </div>
        </div>
        <div role="rowgroup" className={css.body} style={{ height: virtual.getTotalSize(), minWidth: least }}>
          {items.map((item) => {
            const row = model[item.index];
            if (row === undefined) return null;
            return (
              <Line
                key={row.id}
                row={row}
                index={item.index}
                top={item.start}
                template={template}
                columns={shown}
                live={live}
                isCurrent={item.index === current}
                isSelected={row.getIsSelected()}
                canSelect={bulk !== undefined}
                onCurrent={setCurrent}
                onOpen={onOpen}
              />
            );
          })}
        </div>
        {isLoading && rows.length === 0 && <Waiting />}
        {!isLoading && rows.length === 0 && <div className={css.empty}>{empty}</div>}
      </div>
    </div>
  );
}

interface HeadProps<Row> {
  column: Column<Row>;
  sort: string | undefined;
  onSort: (sort: string) => void;
  onResize: ((event: unknown) => void) | undefined;
}

function Head<Row>({ column, sort, onSort, onResize }: HeadProps<Row>) {
  const { header, unit, isNumber } = column;
  const state = sort === column.sort ? "ascending" : sort === `-${column.sort}` ? "descending" : "none";
  const text = unit ? `${header}, ${unit}` : header;
  return (
    <div
      role="columnheader"
      className={isNumber ? css.numberHead : css.headCell}
      aria-sort={column.sort ? state : undefined}
    >
      {column.sort ? (
        <button
          type="button"
          className={css.sort}
          title={text}
          onClick={() => onSort(state === "ascending" ? `-${column.sort}` : (column.sort ?? ""))}
        >
          {text}
          <span aria-hidden>{state === "ascending" ? " ↑" : state === "descending" ? " ↓" : ""}</span>
        </button>
      ) : (
        <span className={css.title} title={text}>
          {text}
        </span>
      )}
      {/* The keyboard reaches widths by the menu of columns; this is for the pointer. */}
      <span className={css.grip} onPointerDown={onResize} aria-hidden />
    </div>
  );
}

interface LineProps<Row extends { id: string }> {
  row: CoreRow<typeof features, Row>;
  index: number;
  top: number;
  template: string;
  columns: readonly Column<Row>[];
  live: LiveRows<Row> | undefined;
  isCurrent: boolean;
  isSelected: boolean;
  canSelect: boolean;
  onCurrent: (index: number) => void;
  onOpen: ((row: Row) => void) | undefined;
}

const Line = memo(function Line<Row extends { id: string }>(props: LineProps<Row>) {
  return props.live ? <LiveLine {...props} live={props.live} /> : <StillLine {...props} now={props.row.original} />;
}) as <Row extends { id: string }>(props: LineProps<Row>) => ReactNode;

function LiveLine<Row extends { id: string }>(props: LineProps<Row> & { live: LiveRows<Row> }) {
  return <StillLine {...props} now={useLiveRow(props.live, props.row.original)} />;
}

function StillLine<Row extends { id: string }>(props: LineProps<Row> & { now: Row | null }) {
  const { row, index, top, template, columns, isCurrent, isSelected, canSelect, now, onCurrent, onOpen } = props;
  const drawn = now ?? row.original;
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={canSelect ? isSelected : undefined}
      className={css.line}
      data-current={isCurrent || undefined}
      data-selected={isSelected || undefined}
      data-gone={now === null || undefined}
      data-id={row.id}
      style={{ gridTemplateColumns: template, transform: `translateY(${top}px)` }}
      onClick={() => onCurrent(index)}
      onDoubleClick={() => onOpen?.(drawn)}
    >
      {canSelect && (
        <div role="cell" className={css.check}>
          <input
            type="checkbox"
            checked={isSelected}
            onChange={row.getToggleSelectedHandler()}
            aria-label={`select ${String(columns[0]?.value(drawn))}`}
          />
        </div>
      )}
      {columns.map((one) => (
        <div key={one.id} role="cell" className={one.isNumber ? css.numberCell : css.cell}>
          {one.cell ? one.cell(drawn) : String(one.value(drawn) ?? "–")}
        </div>
      ))}
    </div>
  );
}

function Waiting() {
  return (
    <div className={css.waiting} aria-hidden>
      {Array.from({ length: 8 }, (_, index) => (
        <Skeleton key={index} height={12} width={`${90 - 7 * index}%`} />
      ))}
    </div>
  );
}
