// The text by which a table is filtered, kept in the URL; `/` goes to it.
import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useQueryState } from "./url";

const PAUSE = 250;

export function Filter({ label, param = "q" }: { label: string; param?: string }) {
  const [query, change] = useQueryState();
  const [text, setText] = useState(query[param] ?? "");
  const tell = useDebouncedCallback((value: string) => change({ [param]: value }), PAUSE);
  useEffect(() => setText(query[param] ?? ""), [query[param], param]);
  return (
    <TextInput
      aria-label={label}
      placeholder={`${label}  /`}
      value={text}
      data-filter
      w={220}
      maxLength={200}
      leftSection={<IconSearch size={14} aria-hidden />}
      onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      onChange={(event) => {
        setText(event.target.value);
        tell(event.target.value);
      }}
    />
  );
}
