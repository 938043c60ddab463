// Asks once before what cannot be undone, and says exactly what will go.
import { Button, Group, Modal, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  isOpen: boolean;
  title: string;
  /** What will go and what stays. */
  children: ReactNode;
  /** The word on the button: what will be done. */
  action: string;
  isBusy?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

export function Confirm({ isOpen, title, children, action, isBusy = false, onConfirm, onClose }: Props) {
  return (
    <Modal opened={isOpen} onClose={onClose} title={title} size="md">
      <Text component="div" size="sm">
        {children}
      </Text>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose} data-autofocus>
          Keep it
        </Button>
        <Button color="red" onClick={onConfirm} loading={isBusy}>
          {action}
        </Button>
      </Group>
    </Modal>
  );
}
