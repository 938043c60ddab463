// The menu of views.
import { ActionIcon, Button, Group, Menu, TextInput } from "@mantine/core";
import { IconChevronDown, IconTrash } from "@tabler/icons-react";
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { forgetView, GIVEN, type SavedView, savedViews, saveView } from "./views";

export function Views() {
  const navigate = useNavigate();
  const query = useRouterState({ select: (state) => state.location.searchStr.replace(/^\?/, "") });
  const [saved, setSaved] = useState(savedViews);
  const [name, setName] = useState("");
  const current = [...GIVEN, ...saved].find((one) => one.query === query)?.name ?? "View";

  function open(view: SavedView): void {
    void navigate({ to: "/workloads", search: Object.fromEntries(new URLSearchParams(view.query)) as never });
  }

  function keep(event: FormEvent): void {
    event.preventDefault();
    if (name.trim() === "") return;
    setSaved(saveView({ name: name.trim().slice(0, 60), query }));
    setName("");
  }

  return (
    <Menu position="bottom-start" closeOnItemClick trapFocus={false}>
      <Menu.Target>
        <Button variant="default" rightSection={<IconChevronDown size={14} aria-hidden />}>
          {current}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {GIVEN.map((view) => (
          <Menu.Item key={view.name} onClick={() => open(view)}>
            {view.name}
          </Menu.Item>
        ))}
        {saved.length > 0 && <Menu.Label>Saved</Menu.Label>}
        {saved.map((view) => (
          <Menu.Item
            key={view.name}
            onClick={() => open(view)}
            rightSection={
              <ActionIcon
                component="span"
                size="xs"
                aria-label={`forget the view ${view.name}`}
                onClick={(event) => {
                  event.stopPropagation();
                  setSaved(forgetView(view.name));
                }}
              >
                <IconTrash size={12} />
              </ActionIcon>
            }
          >
            {view.name}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <form onSubmit={keep}>
          <Group gap={4} p={4} wrap="nowrap">
            <TextInput
              aria-label="name of this view"
              placeholder="save this view as"
              value={name}
              onChange={(event) => setName(event.target.value)}
              onKeyDown={(event) => event.stopPropagation()}
            />
            <Button type="submit" variant="default">
              Save
            </Button>
          </Group>
        </form>
      </Menu.Dropdown>
    </Menu>
  );
}
