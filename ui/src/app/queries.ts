// The cache of what the server said. The event stream keeps it fresh, so nothing is asked again by the clock.
import { QueryClient } from "@tanstack/react-query";
import { client } from "@/api/client.gen";
import { Problem } from "./problems";

client.setConfig({ baseUrl: "", credentials: "same-origin", throwOnError: true });
client.interceptors.error.use((error, response) => Problem.of(error, response));

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => count < 2 && Problem.of(error).isPassing,
    },
    mutations: { retry: false },
  },
});
