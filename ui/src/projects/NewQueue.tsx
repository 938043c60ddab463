// A new project or department.
import { Button, Group, Modal, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { createDepartment, createProject } from "@/api";
import { Problem } from "@/app/problems";
import { changed } from "@/parts/Faults";
import { tellDone } from "@/parts/notify";

export function NewQueue({ departments, onClose }: { departments: readonly string[]; onClose: () => void }) {
  const [kind, setKind] = useState("project");
  const [name, setName] = useState("");
  const [department, setDepartment] = useState("default");
  const [quota, setQuota] = useState("0");
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: async () => {
      const pools = { default: { gpu: { quota: quota.trim() || null } } };
      if (kind === "project") await createProject({ body: { name, department, pools } });
      else await createDepartment({ body: { name, pools } });
    },
    onSuccess: () => {
      tellDone(`Made ${kind} ${name}`);
      void queries.invalidateQueries();
      onClose();
    },
  });
  const problem = create.error && Problem.of(create.error);

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  }

  return (
    <Modal opened onClose={onClose} title="New project or department">
      <form onSubmit={submit}>
        <SegmentedControl data={["project", "department"]} value={kind} onChange={setKind} mb="sm" aria-label="kind" />
        <TextInput
          label="Name"
          description="lower-case letters, digits and -"
          value={name}
          data-autofocus
          autoComplete="off"
          onChange={(event) => setName(event.target.value)}
          error={problem?.of("name")}
        />
        {kind === "project" && (
          <Select
            label="Department"
            data={[...departments]}
            value={department}
            allowDeselect={false}
            searchable
            mt="sm"
            onChange={(value) => setDepartment(value ?? "default")}
            error={problem?.of("department")}
          />
        )}
        <TextInput
          label="GPU quota, devices"
          description="empty: no bound"
          value={quota}
          mt="sm"
          onChange={(event) => setQuota(event.target.value)}
          error={problem?.of("pools.default.gpu.quota")}
        />
        {problem && problem.faults.length === 0 && (
          <p role="alert" style={{ color: "var(--bad)" }}>
            {problem.message}. {changed(problem, false)}
          </p>
        )}
        <Group justify="flex-end" mt="lg">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Make it
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
