package org.verbena.api;

class SoftSecretsTest extends SecretsSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
