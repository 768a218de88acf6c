import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { Todo } from "../message/message.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import type { TodoList } from "../tool/tool.ts";

export interface StoredTodosDeps {
  sessionId: SessionId;
  writer: Pick<SessionWriter, "saveTodos">;
  emit: Emit;
}

/** The todo list of a session, stored when changed. */
export class StoredTodos implements TodoList {
  readonly #deps: StoredTodosDeps;
  #todos: readonly Todo[];

  constructor(todos: readonly Todo[], deps: StoredTodosDeps) {
    this.#todos = todos;
    this.#deps = deps;
  }

  read(): readonly Todo[] {
    return this.#todos;
  }

  async write(todos: Todo[]): Promise<void> {
    const { sessionId, writer, emit } = this.#deps;
    this.#todos = todos;
    writer.saveTodos(todos);
    emit({ sessionId, type: "todos", todos });
  }
}
