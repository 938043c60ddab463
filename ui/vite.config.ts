import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The server puts a new nonce in the place of this word each time that it serves the page.
const NONCE = "NONCE-OF-THIS-ANSWER";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  html: { cspNonce: NONCE },
  build: {
    outDir: "../src/aliquot/api/built",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": process.env.ALIQUOT_URL ?? "http://127.0.0.1:8265" } },
});
