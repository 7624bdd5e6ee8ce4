#!/bin/sh
# stepcast mcp held by the protocol's reference client (npm: @modelcontextprotocol/sdk): every tool
# is called and its answer validated against its own schema, bad arguments are answered, a call is
# cancelled. Of ./dev check: it fetches the client.
#   mcp_client.sh FOLDER_OF_PROGRAMS SOURCE
set -u
[ "${STEPCAST_CHECK:-}" = whole ] || { echo "skipped: of ./dev check"; exit 77; }
for tool in node npm; do
  command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
kept=${XDG_CACHE_HOME:-$HOME/.cache}/stepcast/mcp_client
mkdir -p "$kept"
cp "$2/tests/cli/shared/mcp_client.mjs" "$kept/client.mjs"
if [ ! -d "$kept/node_modules/@modelcontextprotocol/sdk" ]; then
  npm install --prefix "$kept" --no-audit --no-fund --silent @modelcontextprotocol/sdk@1 >&2 ||
    { echo "skipped: npm cannot fetch the client"; exit 77; }
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
node "$kept/client.mjs" "$1/stepcast" "$2" "$work" "${STEPCAST_MCP_CALLS:-200}"
