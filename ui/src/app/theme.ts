// One theme for the page and its charts: quiet surfaces, one accent, two weights of the system's typeface.
import { createTheme, type MantineColorsTuple } from "@mantine/core";

const accent: MantineColorsTuple = [
  "#eef3ff",
  "#dbe5fb",
  "#b6c9f5",
  "#8eabef",
  "#6c91ea",
  "#5681e7",
  "#2f63d8",
  "#1f4fbf",
  "#1a44a6",
  "#12388c",
];

// The greys of the dark theme, of the hue of its surface.
const dark: MantineColorsTuple = [
  "#e3e7ec",
  "#c3cad3",
  "#9ba7b5",
  "#6c7886",
  "#3b4550",
  "#2c343e",
  "#1d232b",
  "#14181d",
  "#101418",
  "#0b0e12",
];

export const theme = createTheme({
  colors: { accent, dark },
  primaryColor: "accent",
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "18px" },
  spacing: { xs: "4px", sm: "8px", md: "12px", lg: "16px", xl: "24px" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "18px", lineHeight: "24px" },
      h2: { fontSize: "15px", lineHeight: "20px" },
      h3: { fontSize: "13px", lineHeight: "20px" },
    },
  },
  defaultRadius: "sm",
  cursorType: "pointer",
  components: {
    Button: { defaultProps: { size: "xs" } },
    ActionIcon: { defaultProps: { variant: "subtle", size: "md" } },
    TextInput: { defaultProps: { size: "xs" } },
    NumberInput: { defaultProps: { size: "xs" } },
    Select: { defaultProps: { size: "xs", checkIconPosition: "right" } },
    MultiSelect: { defaultProps: { size: "xs" } },
    Textarea: { defaultProps: { size: "xs" } },
    Checkbox: { defaultProps: { size: "xs" } },
    Switch: { defaultProps: { size: "xs" } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true, multiline: true, maw: 420 } },
    Modal: { defaultProps: { centered: true, transitionProps: { duration: 0 } } },
  },
});

// Okabe and Ito: eight colours that the colour-blind can tell apart. Beyond eight a pattern tells (see parts/colours).
export const PALETTE = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#d55e00",
  "#b0a818",
  "#7a7f87",
] as const;
