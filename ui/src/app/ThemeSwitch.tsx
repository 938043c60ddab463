// Light, dark, or as the system has it.
import { ActionIcon, Tooltip, useMantineColorScheme } from "@mantine/core";
import { IconDeviceDesktop, IconMoon, IconSun } from "@tabler/icons-react";

const NEXT = { auto: "light", light: "dark", dark: "auto" } as const;
const WORDS = { auto: "as the system", light: "light", dark: "dark" } as const;
const ICONS = { auto: IconDeviceDesktop, light: IconSun, dark: IconMoon } as const;

export function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const Icon = ICONS[colorScheme];
  const label = `theme: ${WORDS[colorScheme]}; change to ${WORDS[NEXT[colorScheme]]}`;
  return (
    <Tooltip label={label}>
      <ActionIcon color="gray" aria-label={label} onClick={() => setColorScheme(NEXT[colorScheme])}>
        <Icon size={16} />
      </ActionIcon>
    </Tooltip>
  );
}
