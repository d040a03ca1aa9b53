#!/bin/sh
echo '{"a": [1, 2, {"b": 3}]}' | jq -c '.a[2].b, (.a | length), (.a[2] | to_entries)'
