// What happened to it, the newest first.
import { Button, Table } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { listEvents, type WorkloadView } from "@/api";
import { Empty } from "@/parts/Empty";
import { Fault } from "@/parts/Faults";
import { When } from "@/parts/When";

export function Events({ item }: { item: WorkloadView }) {
  const list = useInfiniteQuery({
    queryKey: ["workload", item.id, "events"],
    queryFn: async ({ pageParam }) =>
      (await listEvents({ query: { subject: item.id, limit: 100, cursor: pageParam } })).data,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: 0,
  });
  if (list.error) return <Fault error={list.error} what="list the events" onRetry={() => void list.refetch()} />;
  const events = list.data?.pages.flatMap((page) => page.items) ?? [];
  if (list.data && events.length === 0) return <Empty title="Nothing has happened to it yet." />;
  return (
    <>
      <Table verticalSpacing={4}>
        <Table.Tbody>
          {events.map((one) => (
            <Table.Tr key={one.sequence}>
              <Table.Td w={110}>
                <When time={one.time} />
              </Table.Td>
              <Table.Td w={160}>
                <code>{one.code}</code>
              </Table.Td>
              <Table.Td style={{ overflowWrap: "anywhere", unicodeBidi: "isolate" }}>{one.message}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {list.hasNextPage && (
        <Button variant="subtle" onClick={() => void list.fetchNextPage()} loading={list.isFetchingNextPage}>
          Older
        </Button>
      )}
    </>
  );
}
