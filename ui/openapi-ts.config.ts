import { defineConfig } from "@hey-api/openapi-ts";

export default defineConfig({
  input: "../docs/reference/openapi.json",
  output: { path: "src/api", clean: true },
  plugins: [{ name: "@hey-api/client-fetch", throwOnError: true }, "@hey-api/typescript", "@hey-api/sdk"],
});
