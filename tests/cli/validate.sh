# stepcast-validate as a user calls it: results, messages and exit codes.
# Usage: validate.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast-validate
published=$2/calibrate/published
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"

expect 0 'none of a row' collectives "$published/collectives.csv"
expect 0 'no measured curve is used' collectives "$published/collectives.csv" --model-only
expect 2 'exclude each other' collectives "$published/collectives.csv" --model-only --with-curves
expect 0 'CIRCULAR' collectives "$published/collectives.csv" --with-curves
expect 0 '"median_ape_from_1mib"' collectives "$published/collectives.csv" --json
expect 0 'of other kinds' kernels "$published/kernels.csv"
expect 0 'Leave-one-shape-out' kernels "$published/kernels.csv" --leave-out shape
expect 0 'tokens_per_s_per_gpu beside published figures' study --quiet
expect 0 'usage: stepcast validate collectives' collectives --help
expect 0 'mean P(fits)' memory --quiet
expect 5 'scored' collectives "$published/collectives.csv" --fail-above 0.01
expect 0 'scored' collectives "$published/collectives.csv" --fail-above 1000

expect 2 'collectives' # no verb
expect 2 "did you mean 'collectives'" colectives
expect 2 'which file' collectives
expect 2 "unknown option '--jso'" collectives x.csv --jso # no guessing of prefixes
expect 2 'is no percentage' collectives "$published/collectives.csv" --fail-above much
expect 2 'is none of source, shape, gpu' kernels "$published/kernels.csv" --leave-out row
expect 3 'cannot be opened' collectives "$work/none.csv"
printf 'gpu,kinds\n' >"$work/bad.csv"
expect 3 'bad.csv:1' collectives "$work/bad.csv"
expect 3 'holds no collective' collectives "$published/kernels.csv"
head -2 "$published/collectives.csv" | sed 's/,10.11,/,fast,/' >"$work/word.csv"
expect 3 'word.csv:2' collectives "$work/word.csv"
exit $((failures > 0))
