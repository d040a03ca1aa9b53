import java.net.URI;
import java.net.http.*;
import java.nio.file.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

class Fetch {
    public static void main(String[] args) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        try (var in = Files.newInputStream(Path.of("/ca.pem"))) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        var client = HttpClient.newBuilder().sslContext(tls).build();
        var r = client.send(HttpRequest.newBuilder(URI.create("https://good.example/")).build(), HttpResponse.BodyHandlers.ofString());
        System.out.print(r.body());
    }
}
