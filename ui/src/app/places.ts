// Where one can go, in the order of the navigation, with the key that follows `g`.
import {
  IconCpu,
  IconGauge,
  IconHourglass,
  IconList,
  IconReceipt,
  IconServer,
  IconSettings,
  IconSitemap,
} from "@tabler/icons-react";

export const PLACES = [
  { to: "/", label: "Overview", key: "o", icon: IconGauge },
  { to: "/workloads", label: "Workloads", key: "w", icon: IconList },
  { to: "/queue", label: "Queue", key: "q", icon: IconHourglass },
  { to: "/projects", label: "Projects", key: "p", icon: IconSitemap },
  { to: "/devices", label: "Devices", key: "d", icon: IconCpu },
  { to: "/nodes", label: "Nodes", key: "n", icon: IconServer },
  { to: "/usage", label: "Usage", key: "u", icon: IconReceipt },
  { to: "/settings", label: "Settings", key: "s", icon: IconSettings },
] as const;
