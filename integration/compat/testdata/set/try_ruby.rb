require 'etc'
require 'json'
require 'open3'
require 'tempfile'

puts JSON.generate({ a: [1, 2] }), Open3.capture2('tr a b', stdin_data: 'aa')[0], Thread.new { 'a thread' }.value
r, w = IO.pipe
fork { w.puts 'a child' }
Process.wait
puts r.gets, Tempfile.create { |f| f.write('xyz') }, Etc.nprocessors
