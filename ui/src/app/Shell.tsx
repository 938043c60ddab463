// What is around every page: where one can go, who one is, and how fresh what one sees is.
import { ActionIcon, Button, Group, Kbd, Loader, Tooltip, UnstyledButton } from "@mantine/core";
import { spotlight } from "@mantine/spotlight";
import { IconKeyboard, IconPlus, IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { getSession } from "@/api";
import { LiveBar } from "@/live/LiveBar";
import { stream } from "@/live/live";
import { Fault } from "@/parts/Faults";
import { useKeys } from "./keys";
import { PLACES } from "./places";
import { Problem } from "./problems";
import css from "./Shell.module.css";
import { SignIn } from "./SignIn";
import { ThemeSwitch } from "./ThemeSwitch";

const Palette = lazy(() => import("./Palette"));
const KeyList = lazy(() => import("./KeyList"));

export function Shell() {
  const session = useQuery({ queryKey: ["session"], queryFn: async () => (await getSession()).data });
  const isIn = session.data !== undefined;
  useEffect(() => {
    if (!isIn) return;
    stream.open();
    return () => stream.close();
  }, [isIn]);

  if (session.isPending) return <Loader aria-label="loading" className={css.loader} />;
  if (session.error && Problem.of(session.error).isSignedOut) return <SignIn />;
  if (session.error)
    return <Fault error={session.error} what="reach the server" onRetry={() => void session.refetch()} />;
  return <Inside />;
}

function Inside() {
  const [isShowingKeys, setShowingKeys] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  useKeys(() => setShowingKeys(true));
  useEffect(() => {
    const place = PLACES.find((one) => one.to !== "/" && path.startsWith(one.to));
    document.title = `${place?.label ?? (path === "/submit" ? "Submit" : "Overview")} – Aliquot`;
  }, [path]);

  return (
    <div className={css.shell}>
      <a href="#main" className={css.skip}>
        Skip to the page
      </a>
      <nav className={css.nav} aria-label="pages">
        <Link to="/" className={css.brand}>
          <img src="/icon.svg" alt="" width={20} height={20} /> <span>Aliquot</span>
        </Link>
        {PLACES.map(({ to, label, icon: Icon }) => (
          <Link
            key={to}
            to={to}
            className={css.place}
            activeOptions={{ exact: to === "/", includeSearch: false }}
            activeProps={{ "aria-current": "page" }}
          >
            <Icon size={16} aria-hidden /> <span>{label}</span>
          </Link>
        ))}
      </nav>
      <header className={css.top}>
        <UnstyledButton className={css.search} onClick={spotlight.open}>
          <IconSearch size={14} aria-hidden /> Go to or do… <Kbd size="xs">Ctrl K</Kbd>
        </UnstyledButton>
        <Group gap="sm">
          <LiveBar stream={stream} />
          <Tooltip label="keys (?)">
            <ActionIcon color="gray" aria-label="keys" onClick={() => setShowingKeys(true)}>
              <IconKeyboard size={16} />
            </ActionIcon>
          </Tooltip>
          <ThemeSwitch />
          <Button component={Link} to="/submit" leftSection={<IconPlus size={14} />}>
            Submit
          </Button>
        </Group>
      </header>
      <main id="main" className={css.main} tabIndex={-1}>
        <Suspense fallback={<Loader aria-label="loading" className={css.loader} />}>
          <Outlet />
        </Suspense>
      </main>
      <Suspense fallback={null}>
        <Palette />
        {isShowingKeys && <KeyList onClose={() => setShowingKeys(false)} />}
      </Suspense>
    </div>
  );
}
