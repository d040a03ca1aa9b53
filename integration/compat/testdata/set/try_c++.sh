#!/bin/bash
set -e
cd /work
g++ -O1 -x c++ -o a - <<'C'
#include <iostream>
#include <map>
#include <stdexcept>
int main() {
	std::map<int, int> m{{1, 2}};
	try {
		m.at(2);
	} catch (const std::out_of_range &) {
		std::cout << "caught " << m[1] << std::endl;
	}
}
C
./a
