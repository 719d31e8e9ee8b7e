# shellcheck shell=bash
# A PostgreSQL of the tests' own, gone when the script ends; sourced after _lib.sh.

# test_postgres: starts it and exports SLUICE_TEST_POSTGRES, a superuser's URL, and SLUICE_TEST_PGBIN, where psql is. One that the
# caller names already is left as it is.
test_postgres() {
  [ -z "${SLUICE_TEST_POSTGRES:-}" ] || return 0
  export DEV_STATE
  DEV_STATE=$(mktemp -d "${TMPDIR:-/tmp}/sluice-test.XXXXXX")
  chmod 711 "$DEV_STATE"
  trap stop_test_postgres EXIT
  local line
  while IFS= read -r line; do
    case $line in
      DATABASE_URL=*) export SLUICE_TEST_POSTGRES=${line#*=} ;;
      PGBIN=*) export SLUICE_TEST_PGBIN=${line#*=} ;;
    esac
  done < <(dev/start-postgres.sh)
  [ -n "${SLUICE_TEST_POSTGRES:-}" ] || die "PostgreSQL did not start"
}

stop_test_postgres() {
  [ -n "${DEV_STATE:-}" ] || return 0
  dev/stop-postgres.sh --clean >/dev/null 2>&1
  rm -rf "$DEV_STATE"
}
