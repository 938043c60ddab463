// How is this server set up, who did what, and does the ledger balance?
import { Button, SegmentedControl, Table, useMantineColorScheme } from "@mantine/core";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { auditLedger, getSession, getStatus, listAuditRecords, signOut } from "@/api";
import { Copy } from "@/parts/Copy";
import { Facts } from "@/parts/Facts";
import { Fault } from "@/parts/Faults";
import { gpus, number } from "@/parts/format";
import { PageHead } from "@/parts/PageHead";
import { When } from "@/parts/When";
import css from "./Settings.module.css";

export function Settings() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <>
      <PageHead title="Settings" />
      <div className={css.parts}>
        <section>
          <h2>Theme</h2>
          <SegmentedControl
            aria-label="theme"
            value={colorScheme}
            onChange={(value) => setColorScheme(value as "auto" | "light" | "dark")}
            data={[
              { value: "auto", label: "as the system" },
              { value: "light", label: "light" },
              { value: "dark", label: "dark" },
            ]}
          />
        </section>
        <Session />
        <Server />
        <LedgerAudit />
        <AuditRecords />
      </div>
    </>
  );
}

function Session() {
  const queries = useQueryClient();
  const session = useQuery({ queryKey: ["session"], queryFn: async () => (await getSession()).data });
  async function leave(): Promise<void> {
    await signOut();
    queries.clear();
    window.location.assign("/");
  }
  return (
    <section>
      <h2>Session</h2>
      <p>
        Signed in as <strong>{session.data?.actor}</strong>
        {session.data?.expires && (
          <>
            , ends <When time={session.data.expires} />
          </>
        )}
        .
      </p>
      <Button variant="default" onClick={() => void leave()}>
        Sign out
      </Button>
    </section>
  );
}

function Server() {
  const status = useQuery({ queryKey: ["status"], queryFn: async () => (await getStatus()).data });
  if (status.error)
    return <Fault error={status.error} what="read the state of the server" onRetry={() => void status.refetch()} />;
  const state = status.data;
  if (!state) return null;
  return (
    <section>
      <h2>Server</h2>
      <Facts
        items={[
          ["Version", state.version],
          [
            "Address",
            <span key="url">
              {state.url} <Copy value={state.url} label="copy the address" />
            </span>,
          ],
          ["Up", <When key="up" time={state.started} suffix="" />],
          ["Process", `pid ${state.pid} on ${state.node}`],
          [
            "Data",
            <span key="data">
              <code>{state.dataDirectory}</code> <Copy value={state.dataDirectory} label="copy the folder" />
            </span>,
          ],
          ["Runs the work of", state.user],
          ["Devices", state.devices.description],
          ["CPU and memory", state.limits],
        ]}
      />
    </section>
  );
}

function LedgerAudit() {
  const audit = useQuery({ queryKey: ["ledger"], queryFn: async () => (await auditLedger()).data, staleTime: 0 });
  const found = audit.data;
  return (
    <section>
      <h2>Ledger</h2>
      {audit.error && <Fault error={audit.error} what="audit the ledger" onRetry={() => void audit.refetch()} />}
      {found && (
        <p style={{ color: found.isBalanced ? "var(--good)" : "var(--bad)" }}>
          {found.isBalanced ? "It balances" : "It does not balance"}: {number(found.openEntries)} open entries add up to{" "}
          {gpus(found.ledgerMilliGpus)} GPU; pods hold {gpus(found.heldMilliGpus)}.
        </p>
      )}
      <ul>
        {found?.faults.map((fault) => (
          <li key={fault}>{fault}</li>
        ))}
      </ul>
      <Button variant="default" onClick={() => void audit.refetch()} loading={audit.isFetching}>
        Audit again
      </Button>
    </section>
  );
}

function AuditRecords() {
  const list = useInfiniteQuery({
    queryKey: ["audit"],
    queryFn: async ({ pageParam }) => (await listAuditRecords({ query: { limit: 50, cursor: pageParam } })).data,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: 0,
  });
  const records = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <section>
      <h2>Who did what</h2>
      {list.error && <Fault error={list.error} what="list the audit records" onRetry={() => void list.refetch()} />}
      <div style={{ overflowX: "auto" }}>
        <Table verticalSpacing={2}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>When</Table.Th>
              <Table.Th>Who</Table.Th>
              <Table.Th>From</Table.Th>
              <Table.Th>Did</Table.Th>
              <Table.Th>To</Table.Th>
              <Table.Th>Outcome</Table.Th>
              <Table.Th>Detail</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {records.map((one) => (
              <Table.Tr key={one.id}>
                <Table.Td>
                  <When time={one.time} />
                </Table.Td>
                <Table.Td>{one.actor}</Table.Td>
                <Table.Td>{one.origin}</Table.Td>
                <Table.Td>{one.verb}</Table.Td>
                <Table.Td className={css.text}>
                  {one.noun} {one.subject}
                </Table.Td>
                <Table.Td>{one.outcome}</Table.Td>
                <Table.Td className={css.text}>{one.detail.slice(0, 500)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {list.hasNextPage && (
        <Button variant="subtle" onClick={() => void list.fetchNextPage()} loading={list.isFetchingNextPage}>
          Older
        </Button>
      )}
    </section>
  );
}
