// The list of keys.
import { Kbd, Modal, Table } from "@mantine/core";
import { KEYS } from "./keys";

export default function KeyList({ onClose }: { onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Keys" size="sm">
      <Table verticalSpacing={4}>
        <Table.Tbody>
          {KEYS.map(([key, what]) => (
            <Table.Tr key={key}>
              <Table.Td>
                <Kbd size="xs">{key}</Kbd>
              </Table.Td>
              <Table.Td>{what}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
