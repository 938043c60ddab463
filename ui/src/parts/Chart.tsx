// A chart over time, in the theme of the page. Charts of one group share the axis: a zoom on one zooms all. Behind
// each chart stands its table, and both can be downloaded.
import { ActionIcon, Group, Skeleton, Table, Tooltip, useComputedColorScheme } from "@mantine/core";
import { IconDownload, IconPhoto, IconTable } from "@tabler/icons-react";
import type { EChartsType } from "echarts/core";
import { useEffect, useRef, useState } from "react";
import { colour } from "./colours";
import { csv, save } from "./exports";
import { absolute, number } from "./format";

export interface ChartLine {
  name: string;
  values: readonly (number | null)[];
  /** The colour of its name, where none is given. */
  colour?: string;
}

interface Props {
  title: string;
  /** Stands at the axis, as `GPU`. */
  unit: string;
  times: readonly string[];
  lines: readonly ChartLine[];
  /** A line above all, as the capacity. */
  ceiling?: { name: string; values: readonly (number | null)[] };
  kind?: "area" | "line" | "bar";
  height?: number;
  /** Charts of one group zoom together. */
  group?: string;
  isLoading?: boolean;
  /** A part of the axis was chosen. */
  onRange?: (from: string, to: string) => void;
}

export function Chart(props: Props) {
  const { title, unit, height = 220, isLoading = false, times, group } = props;
  const holder = useRef<HTMLDivElement>(null);
  const [isTable, setTable] = useState(false);
  const chart = useRef<EChartsType | null>(null);
  const scheme = useComputedColorScheme();
  const latest = useRef(props);
  latest.current = props;

  const isWaiting = isLoading && times.length === 0;
  useEffect(() => {
    if (isTable || isWaiting || holder.current === null) return;
    let isGone = false;
    let observer: ResizeObserver | null = null;
    const place = holder.current;
    void import("./echarts").then(({ echarts }) => {
      if (isGone) return;
      const made = echarts.init(place, null, { renderer: "canvas" });
      chart.current = made;
      if (group) {
        made.group = group;
        echarts.connect(group);
      }
      made.setOption(optionOf(latest.current));
      made.on("datazoom", () => tellRange(made, latest.current));
      observer = new ResizeObserver(() => made.resize());
      observer.observe(place);
    });
    return () => {
      isGone = true;
      observer?.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, [isTable, isWaiting, group]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colours
  useEffect(() => {
    chart.current?.setOption(optionOf(props), { replaceMerge: ["series"] });
  }, [props, scheme]);

  return (
    <figure style={{ margin: 0 }} aria-label={title}>
      <Group justify="space-between" wrap="nowrap" mb={4}>
        <figcaption>
          <strong>{title}</strong> <span className="quiet">{unit}</span>
        </figcaption>
        <ChartTools
          {...props}
          isTable={isTable}
          onTable={() => setTable(!isTable)}
          onPicture={() => picture(chart.current, title)}
        />
      </Group>
      {isWaiting ? (
        <Skeleton height={height} />
      ) : isTable ? (
        <div style={{ height, overflow: "auto" }}>
          <Figures {...props} />
        </div>
      ) : (
        <div
          ref={holder}
          style={{ height }}
          role="img"
          aria-label={`${title}: a chart; its table is behind the button`}
        />
      )}
    </figure>
  );
}

interface ToolsProps extends Props {
  isTable: boolean;
  onTable: () => void;
  onPicture: () => void;
}

function ChartTools({ title, times, lines, ceiling, isTable, onTable, onPicture }: ToolsProps) {
  function download(): void {
    const all = ceiling ? [...lines, ceiling] : lines;
    const rows = times.map((time, index) => [time, ...all.map((line) => line.values[index] ?? null)]);
    save(`${title}.csv`, csv(["time", ...all.map((line) => line.name)], rows), "text/csv");
  }
  return (
    <Group gap={0} wrap="nowrap">
      <Tooltip label={isTable ? "as a chart" : "as a table"}>
        <ActionIcon
          color="gray"
          size="sm"
          onClick={onTable}
          aria-label={`${title} as a ${isTable ? "chart" : "table"}`}
        >
          <IconTable size={14} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label="download CSV">
        <ActionIcon color="gray" size="sm" onClick={download} aria-label={`download ${title} as CSV`}>
          <IconDownload size={14} />
        </ActionIcon>
      </Tooltip>
      {!isTable && (
        <Tooltip label="download PNG">
          <ActionIcon color="gray" size="sm" onClick={onPicture} aria-label={`download ${title} as PNG`}>
            <IconPhoto size={14} />
          </ActionIcon>
        </Tooltip>
      )}
    </Group>
  );
}

function Figures({ times, lines, ceiling }: Props) {
  const all = ceiling ? [...lines, ceiling] : lines;
  return (
    <Table stickyHeader verticalSpacing={2}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>time</Table.Th>
          {all.map((line) => (
            <Table.Th key={line.name} className="number">
              {line.name}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {times.map((time, index) => (
          <Table.Tr key={time}>
            <Table.Td>{absolute(time)}</Table.Td>
            {all.map((line) => (
              <Table.Td key={line.name} className="number">
                {show(line.values[index])}
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function show(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : number(value);
}

/** The value of a colour of the page's theme: canvas knows no CSS variables. */
function themed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function optionOf({ times, lines, ceiling, kind = "area", unit }: Props) {
  const quiet = themed("--text-quiet");
  const split = themed("--line");
  const isBar = kind === "bar";
  const points = (values: readonly (number | null)[]) => times.map((time, index) => [time, values[index] ?? null]);
  const series = lines.map((line) => ({
    name: line.name,
    type: isBar ? "bar" : "line",
    stack: kind === "line" ? undefined : "all",
    data: points(line.values),
    showSymbol: false,
    lineStyle: { width: kind === "line" ? 2 : 1 },
    areaStyle: kind === "area" ? { opacity: 0.55 } : undefined,
    itemStyle: { color: line.colour ?? colour(line.name) },
    connectNulls: false,
    animation: false,
  }));
  const above = ceiling && {
    name: ceiling.name,
    type: "line",
    step: "end",
    data: points(ceiling.values),
    showSymbol: false,
    lineStyle: { width: 1.5, type: "dashed", color: themed("--text") },
    itemStyle: { color: themed("--text") },
    animation: false,
  };
  return {
    animation: false,
    aria: { enabled: false },
    textStyle: { fontFamily: "system-ui, sans-serif", fontSize: 12 },
    grid: { left: 48, right: 12, top: 10, bottom: lines.length > 1 ? 52 : 28 },
    // Tooltips as rich text: as HTML they would need inline styles, which the page's policy forbids.
    tooltip: {
      trigger: "axis",
      renderMode: "richText",
      confine: true,
      backgroundColor: themed("--surface-raised"),
      borderColor: split,
      textStyle: { color: themed("--text"), fontSize: 12 },
      valueFormatter: (value: unknown) => (typeof value === "number" ? `${number(value)} ${unit}` : "–"),
    },
    legend:
      lines.length > 1 ? { bottom: 0, type: "scroll", textStyle: { color: quiet }, icon: "roundRect" } : undefined,
    xAxis: { type: "time", axisLabel: { color: quiet, hideOverlap: true }, axisLine: { lineStyle: { color: split } } },
    yAxis: { type: "value", min: 0, axisLabel: { color: quiet }, splitLine: { lineStyle: { color: split } } },
    dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false }],
    series: above ? [...series, above] : series,
  };
}

function tellRange(chart: EChartsType, { onRange, times }: Props): void {
  const zoom = (chart.getOption() as { dataZoom?: { startValue?: number; endValue?: number }[] }).dataZoom?.[0];
  if (onRange && times.length > 0 && zoom?.startValue !== undefined && zoom.endValue !== undefined)
    onRange(new Date(zoom.startValue).toISOString(), new Date(zoom.endValue).toISOString());
}

function picture(chart: EChartsType | null, title: string): void {
  if (chart === null) return;
  const link = document.createElement("a");
  link.href = chart.getDataURL({ pixelRatio: 2, backgroundColor: themed("--surface") });
  link.download = `${title}.png`;
  link.click();
}
