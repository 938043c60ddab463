// What went wrong with a request, as the server tells it (RFC 9457), or the network.
export interface FieldFault {
  field: string;
  message: string;
  valid: string[];
}

/** A request that failed. `status` 0: the server was not reached, so nothing is known of what it did. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly faults: FieldFault[] = [],
  ) {
    super(message);
  }

  /** Whether it may work when tried again. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 503;
  }

  /** Whether this browser is not signed in. */
  get isSignedOut(): boolean {
    return this.status === 401;
  }

  /** What the server said of one field, with what is valid there, or null. */
  of(field: string): string | null {
    const fault = this.faults.find((one) => one.field === field);
    if (fault === undefined) return null;
    return fault.valid.length > 0 ? `${fault.message}; valid: ${fault.valid.slice(0, 8).join(", ")}` : fault.message;
  }

  static of(error: unknown, response?: Response): Problem {
    if (error instanceof Problem) return error;
    if (typeof error === "object" && error !== null && "code" in error && "detail" in error) {
      const said = error as { detail: string; status: number; code: string; errors?: FieldFault[] };
      return new Problem(said.detail, said.status, said.code, said.errors ?? []);
    }
    if (response !== undefined && !response.ok)
      return new Problem(`the server answered ${response.status}`, response.status, "unknown");
    return new Problem("the server was not reached", 0, "not-reached");
  }
}
