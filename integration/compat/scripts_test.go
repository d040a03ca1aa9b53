package compat

import "testing"

var scripts = []program{
	{file: "perl.pl", needs: "perl", want: "a thread 55 a child\nexit 3\na socket\n"},
	{file: "ruby.rb", needs: "ruby", want: "{\"a\":[1,2]}\nbb\na thread\na child\n3\n1\n"},
	{file: "php.php", needs: "php", want: "{\"a\":1}\na child\nbb\na file e3b0c442\n"},
	{file: "lua.lua", needs: "lua5.4", want: "a child\t3\t/tmp/lua\na coroutine\n"},
	{file: "r.R", needs: "Rscript", want: "[1] 1 2\na child 1 1 \n1 4 9 \n%PDF-1.4 \n1 \n"},
}

func TestScripts(t *testing.T) { each(t, scripts) }
