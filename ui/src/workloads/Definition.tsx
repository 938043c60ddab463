// What was submitted, as YAML and as JSON, to copy or to submit again.
import { Code, Group, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { stringify } from "yaml";
import type { WorkloadDetail } from "@/api";
import { Copy } from "@/parts/Copy";

export default function Definition({ item }: { item: WorkloadDetail }) {
  const [format, setFormat] = useState("YAML");
  const text = format === "YAML" ? stringify(item.definition) : JSON.stringify(item.definition, null, 2);
  return (
    <>
      <Group mb="sm">
        <SegmentedControl data={["YAML", "JSON"]} value={format} onChange={setFormat} aria-label="format" />
        <Copy value={text} label="copy the definition" />
        <span className="quiet">
          checkpoints in <code>{item.checkpointDirectory}</code>
        </span>
      </Group>
      <Code block style={{ unicodeBidi: "isolate" }} tabIndex={0}>
        {text}
      </Code>
    </>
  );
}
