// An empty place teaches: what would be here, and the one command or button that makes the first.
import { Center, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { Copy } from "./Copy";

export function Empty({ title, command, children }: { title: string; command?: string; children?: ReactNode }) {
  return (
    <Center py="xl">
      <Stack align="center" gap="sm">
        <span>{title}</span>
        {command && (
          <span>
            <code>{command}</code> <Copy value={command} label="copy the command" />
          </span>
        )}
        {children}
      </Stack>
    </Center>
  );
}
