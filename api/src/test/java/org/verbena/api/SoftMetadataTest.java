package org.verbena.api;

class SoftMetadataTest extends MetadataSuite {
    @Override
    protected String provider() {
        return "soft";
    }
}
