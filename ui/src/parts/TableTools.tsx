// What stands above a table: its filters or, when rows are selected, what can be done with them; then the columns that
// are shown and a download of what is seen.
import { ActionIcon, Checkbox, Group, Menu, Tooltip } from "@mantine/core";
import { IconColumns3, IconDownload } from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { LiveRows } from "@/live/rows";
import type { Column } from "./DataTable";
import { csv, json, save } from "./exports";

interface Props<Row extends { id: string }> {
  name: string;
  columns: readonly Column<Row>[];
  shown: readonly Column<Row>[];
  rows: readonly Row[];
  /** Whether `rows` are only those selected. */
  isPart: boolean;
  live: LiveRows<Row> | undefined;
  onColumns: (ids: string[] | undefined) => void;
  children: ReactNode;
}

export function TableTools<Row extends { id: string }>(props: Props<Row>) {
  const { name, columns, shown, rows, isPart, live, onColumns, children } = props;

  function download(format: "csv" | "json"): void {
    const now = rows.flatMap((row) => (live ? (live.of(row) ?? []) : row));
    const header = shown.map((one) => (one.unit ? `${one.header} (${one.unit})` : one.header));
    const values = now.map((row) => shown.map((one) => one.value(row)));
    const text = format === "csv" ? csv(header, values) : json(header, values);
    save(`${name}.${format}`, text, format === "csv" ? "text/csv" : "application/json");
  }

  function toggle(id: string): void {
    const ids = columns.filter((one) => shown.includes(one) !== (one.id === id)).map((one) => one.id);
    if (ids.length > 0) onColumns(ids);
  }

  return (
    <Group gap="sm" wrap="nowrap" mb="sm" justify="space-between">
      <Group gap="sm" style={{ minWidth: 0 }}>
        {children}
      </Group>
      <Group gap={0} wrap="nowrap">
        <Menu closeOnItemClick={false} position="bottom-end">
          <Menu.Target>
            <Tooltip label="columns">
              <ActionIcon aria-label={`columns of ${name}`} color="gray">
                <IconColumns3 size={16} />
              </ActionIcon>
            </Tooltip>
          </Menu.Target>
          <Menu.Dropdown>
            {columns.map((one) => (
              <Menu.Item
                key={one.id}
                onClick={() => toggle(one.id)}
                role="menuitemcheckbox"
                aria-checked={shown.includes(one)}
              >
                <Checkbox label={one.header} checked={shown.includes(one)} readOnly tabIndex={-1} aria-hidden />
              </Menu.Item>
            ))}
            <Menu.Divider />
            <Menu.Item onClick={() => onColumns(undefined)}>As at first</Menu.Item>
          </Menu.Dropdown>
        </Menu>
        <Menu position="bottom-end">
          <Menu.Target>
            <Tooltip label={isPart ? `download the ${rows.length} selected` : "download what is seen"}>
              <ActionIcon aria-label={`download ${name}`} color="gray">
                <IconDownload size={16} />
              </ActionIcon>
            </Tooltip>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => download("csv")}>CSV</Menu.Item>
            <Menu.Item onClick={() => download("json")}>JSON</Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </Group>
    </Group>
  );
}
