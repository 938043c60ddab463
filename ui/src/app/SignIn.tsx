// Who is not signed in gets in by the token; the one-time link of the command line does the same without typing.
import { Button, PasswordInput, Stack, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { createSession } from "@/api";
import { Copy } from "@/parts/Copy";
import { Problem } from "./problems";

export function SignIn() {
  const [token, setToken] = useState("");
  const queries = useQueryClient();
  const signIn = useMutation({
    mutationFn: () => createSession({ body: { token: token.trim() } }),
    onSuccess: () => queries.resetQueries({ queryKey: ["session"] }),
  });
  const problem = signIn.error && Problem.of(signIn.error);

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (token.trim() !== "" && !signIn.isPending) signIn.mutate();
  }

  return (
    <main style={{ maxWidth: 420, margin: "12vh auto", padding: 16 }}>
      <Stack gap="lg">
        <Title order={1}>Aliquot</Title>
        <form onSubmit={submit}>
          <Stack gap="md">
            <PasswordInput
              label="Token"
              description="`aliquot token` shows it on the machine of the server"
              autoFocus
              autoComplete="off"
              value={token}
              onChange={(event) => setToken(event.target.value)}
              error={problem?.message}
              size="sm"
            />
            <Button type="submit" loading={signIn.isPending} disabled={token.trim() === ""} size="sm">
              Sign in
            </Button>
          </Stack>
        </form>
        <p className="quiet">
          Or on that machine type <code>aliquot sign-in</code>
          <Copy value="aliquot sign-in" label="copy the command" />: it prints a link that signs this browser in, once.
        </p>
      </Stack>
    </main>
  );
}
