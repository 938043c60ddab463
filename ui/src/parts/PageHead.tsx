// The head of a page: its title, what it is about in a few words, and what can be done here.
import { Group, Title } from "@mantine/core";
import type { ReactNode } from "react";

export function PageHead({ title, about, children }: { title: ReactNode; about?: ReactNode; children?: ReactNode }) {
  return (
    <Group justify="space-between" mb="md" wrap="nowrap" align="flex-start">
      <div style={{ minWidth: 0 }}>
        <Title order={1}>{title}</Title>
        {about && <div className="quiet">{about}</div>}
      </div>
      <Group gap="sm" wrap="nowrap">
        {children}
      </Group>
    </Group>
  );
}
